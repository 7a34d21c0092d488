package store

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
)

// NotFoundError means that the object does not exist.
type NotFoundError struct {
	Kind model.Kind
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no %s named %q", e.Kind, e.Name) }

// ExistsError means that another object has the name, or a value that must be unique.
type ExistsError struct {
	Kind  model.Kind
	Field string
	Value string
	// Holder is the object that has the name or value.
	Holder string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s %s: %q is %s's already", e.Kind, e.Field, e.Value, e.Holder)
}

// ConflictError means that the object has changed since the caller read it.
type ConflictError struct {
	Kind model.Kind
	Name string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %q has changed since you read it: read it again and redo the change", e.Kind, e.Name)
}

// EtcdLimitError means that a change exceeds a limit with which the external etcd was started. Nothing was changed.
type EtcdLimitError struct {
	// Flag of etcd, and the smallest value that it needs.
	Flag   string
	Needed int
	Cause  error
}

func (e *EtcdLimitError) Error() string {
	return fmt.Sprintf("etcd refuses a change of this size (%v): start every etcd member with %s=%d or more",
		e.Cause, e.Flag, e.Needed)
}

func (e *EtcdLimitError) Unwrap() error { return e.Cause }

// RefusedForGood reports whether etcd would refuse the same change again.
func RefusedForGood(err error) bool {
	var limit *EtcdLimitError
	var refused rpctypes.EtcdError
	return errors.As(err, &limit) || errors.As(err, &refused) && refused.Code() == codes.InvalidArgument
}

// ErrBusy means that other writers came first at every attempt. Nothing was changed.
var ErrBusy = errors.New("other changes kept coming first; nothing was changed: try again")
