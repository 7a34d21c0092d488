package controller

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
)

// clientError converts an error of the control plane to an error for CSI's caller: the same code, with the fields by name.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	code := status.Code(err)
	switch code {
	case codes.NotFound, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
		return status.Error(code, status.Convert(err).Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		// CSI's callers would interpret these codes as missing rights of their own users.
		return status.Errorf(codes.Internal, "the control plane does not let the CSI driver do this: %s; the driver's certificate has to name "+
			"the organization sluice:csi", status.Convert(err).Message())
	}
	return status.Error(code, client.Explain(err))
}

func absent(err error) bool { return client.IsNotFound(err) }

func invalid(format string, words ...any) error {
	return status.Errorf(codes.InvalidArgument, format, words...)
}

func precondition(format string, words ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, words...)
}

// errNoHost means that a target was to name a Host that was deleted meanwhile.
var errNoHost = status.Error(codes.Aborted, "the node's Host was deleted this moment; try again")

// hostRefused reports whether the control plane refuses a target because a Host that it would name does not exist.
func hostRefused(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && refusedField(err, "spec.hosts[", "]")
}

// refusedField reports whether the control plane refuses a field whose name has this prefix and suffix.
func refusedField(err error, begins, ends string) bool {
	for _, field := range client.Fields(err) {
		if strings.HasPrefix(field.GetField(), begins) && strings.HasSuffix(field.GetField(), ends) {
			return true
		}
	}
	return false
}
