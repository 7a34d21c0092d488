package store

import (
	"errors"
	"fmt"

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

// ErrBusy says that other writers kept winning; nothing was changed.
var ErrBusy = errors.New("other changes kept coming first; nothing was changed: try again")
