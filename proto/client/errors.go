package client

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// IsNotFound reports whether the object of a call does not exist.
func IsNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// Fields returns the fields that the control plane refused, in its order, each with what is wrong and how to correct it. It returns nil
// for an error that names no field.
func Fields(err error) []*errdetails.BadRequest_FieldViolation {
	var fields []*errdetails.BadRequest_FieldViolation
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			fields = append(fields, bad.GetFieldViolations()...)
		}
	}
	return fields
}

// IsUntrusted reports whether TLS is the reason why there is no connection: one end does not accept the certificate of the other.
func IsUntrusted(err error) bool {
	if status.Code(err) != codes.Unavailable {
		return false
	}
	// gRPC has no code and no detail for it, only the text of the error.
	for _, sign := range []string{"authentication handshake failed", "tls: ", "x509: "} {
		if strings.Contains(status.Convert(err).Message(), sign) {
			return true
		}
	}
	return false
}

// Explain describes an error for the author of a request: each refused field with what is wrong; for a refusal without fields the message
// of the control plane; else why the control plane does not answer, with a remedy if TLS is the reason. It returns the empty text for nil.
func Explain(err error) string {
	message := status.Convert(err).Message()
	if fields := Fields(err); len(fields) > 0 {
		all := make([]string, 0, len(fields))
		for _, field := range fields {
			all = append(all, field.GetField()+": "+field.GetDescription())
		}
		message = strings.Join(all, "; ")
	}
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.Aborted:
		return message
	}
	if IsUntrusted(err) {
		return "no trusted connection to the control plane: " + message + "; --tls-ca has to hold the CA of the control plane's " +
			"certificate, and --tls-cert a certificate that the control plane's own --tls-ca has signed"
	}
	return "the control plane does not answer: " + message
}
