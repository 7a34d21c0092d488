package api

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// StatusOf converts an error of the store or the model to the status for the client, for services of other packages.
func StatusOf(err error) error { return statusOf(err) }

// statusOf converts an error of the store or the model to the status for the client.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	var (
		invalid      *model.InvalidError
		precondition *model.PreconditionError
		illegal      *model.IllegalTransition
		absent       *store.NotFoundError
		exists       *store.ExistsError
		conflict     *store.ConflictError
		exhausted    *store.ExhaustedError
		limit        *store.EtcdLimitError
	)
	switch {
	case errors.As(err, &invalid):
		return withFields(codes.InvalidArgument, err, invalid.Violations)
	case errors.As(err, &precondition):
		return withFields(codes.FailedPrecondition, err, precondition.Violations)
	case errors.As(err, &exists):
		return withFields(codes.AlreadyExists, err,
			model.Violations{{Field: exists.Field, Description: err.Error()}})
	case errors.As(err, &illegal):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.As(err, &absent):
		return status.Error(codes.NotFound, err.Error())
	case errors.As(err, &conflict), errors.Is(err, store.ErrBusy):
		return status.Error(codes.Aborted, err.Error())
	case errors.As(err, &exhausted):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.As(err, &limit):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if _, already := status.FromError(err); already {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// withFields adds the invalid fields, as google.rpc.BadRequest.
func withFields(code codes.Code, err error, violations model.Violations) error {
	details := &errdetails.BadRequest{}
	for _, violation := range violations {
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: violation.Field, Description: violation.Description,
		})
	}
	with, detailsErr := status.New(code, err.Error()).WithDetails(details)
	if detailsErr != nil { // only for a code of OK
		return status.Error(code, err.Error())
	}
	return with.Err()
}
