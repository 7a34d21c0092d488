package controller

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
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
		// CSI's callers would take these codes for a lack of their own users' rights.
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

// errNoHost is where a target was to name a Host that was deleted meanwhile.
var errNoHost = status.Error(codes.Aborted, "the node's Host was deleted this moment; try again")

// hostRefused says that the control plane refuses a target since a Host that it would name is not there.
func hostRefused(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && refusedField(err, "spec.hosts[", "]")
}

// refusedField says that the control plane refuses a field of such a name.
func refusedField(err error, begins, ends string) bool {
	for _, field := range client.Fields(err) {
		if strings.HasPrefix(field.GetField(), begins) && strings.HasSuffix(field.GetField(), ends) {
			return true
		}
	}
	return false
}
