package store

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
)

// NotFoundError says that there is no such object.
type NotFoundError struct {
	Kind model.Kind
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no %s named %q", e.Kind, e.Name) }

// ExistsError says that a name, or a value that is unique, is taken.
type ExistsError struct {
	Kind  model.Kind
	Field string
	Value string
	// Holder is the object that has it.
	Holder string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s %s: %q is %s's already", e.Kind, e.Field, e.Value, e.Holder)
}

// ConflictError says that the object has changed since the caller read it.
type ConflictError struct {
	Kind model.Kind
	Name string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %q has changed since you read it: read it again and redo the change", e.Kind, e.Name)
}

// EtcdLimitError says that a change is larger than the external etcd takes as it was started; nothing was changed.
type EtcdLimitError struct {
	// Flag of etcd, and the least it has to be.
	Flag   string
	Needed int
	Cause  error
}

func (e *EtcdLimitError) Error() string {
	return fmt.Sprintf("etcd refuses a change of this size (%v): start every etcd member with %s=%d or more",
		e.Cause, e.Flag, e.Needed)
}

func (e *EtcdLimitError) Unwrap() error { return e.Cause }

// RefusedForGood says that etcd refuses a change for what it is: it would be refused again.
func RefusedForGood(err error) bool {
	var limit *EtcdLimitError
	var refused rpctypes.EtcdError
	return errors.As(err, &limit) || errors.As(err, &refused) && refused.Code() == codes.InvalidArgument
}

// ErrBusy says that other writers kept winning; nothing was changed.
var ErrBusy = errors.New("other changes kept coming first; nothing was changed: try again")
