package mirror

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sluice "sluice.dev/sluice/proto/client"
)

// Reasons of conditions for errors of the control plane.
const (
	ReasonInvalid     = "Invalid"
	ReasonNotPossible = "NotPossibleNow"
	ReasonTaken       = "AlreadyTaken"
	ReasonForbidden   = "NotAllowed"
	ReasonUnreachable = "ControlPlaneUnreachable"
	ReasonUntrusted   = "ControlPlaneNotTrusted"
	ReasonExhausted   = "Exhausted"
)

// Refusal is an error of the control plane, for the author of a resource.
type Refusal struct {
	Code    codes.Code
	Reason  string
	Message string
}

// Explain converts an error of a call to the reason and message of a condition: the fields by name, with the problem and its
// remedy.
func Explain(err error) Refusal {
	refusal := Refusal{Code: status.Code(err), Message: sluice.Explain(err)}
	switch refusal.Code {
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
		refusal.Reason = ReasonUnreachable
		if sluice.IsUntrusted(err) {
			refusal.Reason = ReasonUntrusted
		}
	}
	return refusal
}

// Lasting reports whether the same call would fail again until the resource, or one to which it refers, changes.
func (r Refusal) Lasting() bool { return r.Reason != ReasonUnreachable && r.Reason != ReasonUntrusted }
