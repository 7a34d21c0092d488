package client_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
)

func refused(t *testing.T, code codes.Code, fields ...string) error {
	t.Helper()
	bad := &errdetails.BadRequest{}
	for _, field := range fields {
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: field, Description: "is missing"})
	}
	with, err := status.New(code, "all in one").WithDetails(bad)
	if err != nil {
		t.Fatal(err)
	}
	return with.Err()
}

func TestExplainNamesEachRefusedField(t *testing.T) {
	err := refused(t, codes.InvalidArgument, "spec.pool", "spec.sizeBytes")
	if got := client.Explain(err); got != "spec.pool: is missing; spec.sizeBytes: is missing" {
		t.Error(got)
	}
	if fields := client.Fields(err); len(fields) != 2 || fields[1].GetField() != "spec.sizeBytes" {
		t.Errorf("%v", fields)
	}
}

func TestExplainKeepsTheMessageOfARefusalAndMarksEveryOtherError(t *testing.T) {
	refusals := []codes.Code{codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.Aborted}
	for _, code := range refusals {
		if got := client.Explain(status.Error(code, "why")); got != "why" {
			t.Errorf("%v: %q", code, got)
		}
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Unimplemented} {
		if got := client.Explain(status.Error(code, "why")); got != "the control plane does not answer: why" {
			t.Errorf("%v: %q", code, got)
		}
	}
	if got := client.Explain(nil); got != "" {
		t.Errorf("no error: %q", got)
	}
	if client.Fields(errors.New("no status")) != nil || client.Fields(nil) != nil {
		t.Error("an error without details has fields")
	}
}

func TestErrorsOfTLSAreDistinctFromAControlPlaneThatIsAway(t *testing.T) {
	for message, want := range map[string]bool{
		`connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: unknown"`: true,
		`connection error: desc = "error reading server preface: remote error: tls: unknown certificate authority"`:               true,
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`:            false,
	} {
		err := status.Error(codes.Unavailable, message)
		if client.IsUntrusted(err) != want || strings.Contains(client.Explain(err), "--tls-ca") != want {
			t.Errorf("%s: %v, %s", message, client.IsUntrusted(err), client.Explain(err))
		}
	}
	if client.IsUntrusted(status.Error(codes.Unknown, "tls: an error of a call")) {
		t.Error("an error of another code is one of TLS")
	}
}

func TestIsNotFoundIsForThatCodeOnly(t *testing.T) {
	if !client.IsNotFound(status.Error(codes.NotFound, "")) || client.IsNotFound(nil) || client.IsNotFound(status.Error(codes.Unavailable, "")) {
		t.Error("the code is not compared")
	}
}
