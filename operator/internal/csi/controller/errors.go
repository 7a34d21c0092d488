package controller

import (
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
