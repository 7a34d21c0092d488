package controlplane

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reasons of conditions that an error of the control plane leads to.
const (
	ReasonInvalid     = "Invalid"
	ReasonNotPossible = "NotPossibleNow"
	ReasonTaken       = "AlreadyTaken"
	ReasonForbidden   = "NotAllowed"
	ReasonUnreachable = "ControlPlaneUnreachable"
	ReasonUntrusted   = "ControlPlaneNotTrusted"
	ReasonExhausted   = "Exhausted"
)

// Refusal is an error of the control plane, for whoever wrote a resource.
type Refusal struct {
	Code    codes.Code
	Reason  string
	Message string
}

// Explain says what an error means: fields by name, with what is wrong and how to mend it.
func Explain(err error) Refusal {
	told := status.Convert(err)
	refusal := Refusal{Code: told.Code(), Message: told.Message()}
	var fields []string
	for _, detail := range told.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				fields = append(fields, violation.GetField()+": "+violation.GetDescription())
			}
		}
	}
	if len(fields) > 0 {
		refusal.Message = strings.Join(fields, "; ")
	}
	switch told.Code() {
	case codes.InvalidArgument:
		refusal.Reason = ReasonInvalid
	case codes.AlreadyExists:
		refusal.Reason = ReasonTaken
	case codes.ResourceExhausted:
		refusal.Reason = ReasonExhausted
	case codes.PermissionDenied, codes.Unauthenticated:
		refusal.Reason = ReasonForbidden
		refusal.Message = "the control plane does not let the operator do this: " + refusal.Message +
			"; its certificate has to name the organization sluice:operator"
	case codes.FailedPrecondition, codes.Aborted:
		refusal.Reason = ReasonNotPossible
	default:
		if told.Code() == codes.Unavailable && untrusted(told.Message()) {
			refusal.Reason = ReasonUntrusted
			refusal.Message = "no trusted connection to the control plane: " + refusal.Message + "; --tls-ca has to hold the CA of the " +
				"control plane's certificate, and --tls-cert a certificate that the control plane's own --tls-ca has signed"
			break
		}
		refusal.Reason = ReasonUnreachable
		refusal.Message = "the control plane does not answer: " + refusal.Message
	}
	return refusal
}

// Lasting says that trying again at once would bring nothing: the resource, or what it refers to, has to change first.
func (r Refusal) Lasting() bool { return r.Reason != ReasonUnreachable && r.Reason != ReasonUntrusted }

// untrusted says that TLS is what failed, here or over there. gRPC tells of it in words only.
func untrusted(message string) bool {
	for _, sign := range []string{"authentication handshake failed", "tls: ", "x509: "} {
		if strings.Contains(message, sign) {
			return true
		}
	}
	return false
}

// IsNotFound says that an object is not there.
func IsNotFound(err error) bool { return status.Code(err) == codes.NotFound }
