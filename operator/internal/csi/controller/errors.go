package controller

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/controlplane"
)

// told turns an error of the control plane into what CSI's caller is told: the same code, the fields by name.
func told(err error) error {
	if err == nil {
		return nil
	}
	code := status.Code(err)
	switch code {
	case codes.NotFound, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
		return status.Error(code, status.Convert(err).Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		code = codes.Internal // CSI's callers would take these for their own users'
	}
	return status.Error(code, controlplane.Explain(err).Message)
}

func absent(err error) bool { return status.Code(err) == codes.NotFound }

func invalid(format string, words ...any) error {
	return status.Errorf(codes.InvalidArgument, format, words...)
}

func precondition(format string, words ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, words...)
}

// errNoHost is where a target was to name a Host that was deleted meanwhile.
var errNoHost = status.Error(codes.Aborted, "the node's Host was deleted this moment; try again")

// hostRefused says that the control plane refuses a target since a Host that it would name is not there.
func hostRefused(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && refusedField(err, "spec.hosts[", "]")
}

// refusedField says that the control plane refuses a field of such a name.
func refusedField(err error, begins, ends string) bool {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				if strings.HasPrefix(violation.GetField(), begins) && strings.HasSuffix(violation.GetField(), ends) {
					return true
				}
			}
		}
	}
	return false
}
