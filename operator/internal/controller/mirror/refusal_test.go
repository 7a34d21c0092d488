package mirror

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestARefusalNamesItsFields(t *testing.T) {
	with, err := status.New(codes.InvalidArgument, "all in one").WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "spec.pool", Description: "is missing"}}})
	if err != nil {
		t.Fatal(err)
	}
	if refusal := Explain(with.Err()); refusal.Reason != ReasonInvalid || refusal.Message != "spec.pool: is missing" || !refusal.Lasting() {
		t.Errorf("%+v", refusal)
	}
	if refusal := Explain(status.Error(codes.Unavailable, "gone")); refusal.Lasting() {
		t.Errorf("a control plane that is away was taken for an answer: %+v", refusal)
	}
}

func TestAnUntrustedControlPlaneIsDistinguishedFromAnUnreachableOne(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: unknown"`: ReasonUntrusted,
		`connection error: desc = "error reading server preface: remote error: tls: unknown certificate authority"`:               ReasonUntrusted,
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`:            ReasonUnreachable,
	} {
		if refusal := Explain(status.Error(codes.Unavailable, message)); refusal.Reason != want || refusal.Lasting() {
			t.Errorf("%s: %+v", message, refusal)
		}
	}
	if refusal := Explain(status.Error(codes.Unknown, "tls: whatever")); refusal.Reason != ReasonUnreachable {
		t.Errorf("%+v", refusal)
	}
}
