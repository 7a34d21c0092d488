package model

import (
	"fmt"
	"strings"
)

// Violation names a field, what is wrong with it, and how to correct it.
type Violation struct {
	// Field is a path as in `spec.luns[1].volume`.
	Field       string
	Description string
}

// Violations are all problems of an object; none means valid.
type Violations []Violation

// Add adds a violation.
func (v *Violations) Add(field, description string) {
	*v = append(*v, Violation{field, description})
}

// Addf adds a violation with a formatted description.
func (v *Violations) Addf(field, format string, args ...any) {
	v.Add(field, fmt.Sprintf(format, args...))
}

// reference adds a violation if a field does not name another object.
func (v *Violations) reference(field, name string, kind Kind) {
	if !ValidName(name) {
		v.Addf(field, "must name a %s", kind)
	}
}

// Err returns nil if there are no violations, else an InvalidError.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return &InvalidError{v}
}

// InvalidError rejects an object that is invalid regardless of the other objects.
type InvalidError struct{ Violations Violations }

func (e *InvalidError) Error() string { return join("invalid", e.Violations) }

// PreconditionError rejects a change that other objects, or the object's present state, do not allow now.
type PreconditionError struct{ Violations Violations }

func (e *PreconditionError) Error() string { return join("not now", e.Violations) }

// Precondition returns a PreconditionError with one violation.
func Precondition(field, format string, args ...any) error {
	return &PreconditionError{Violations{{field, fmt.Sprintf(format, args...)}}}
}

func join(what string, violations Violations) string {
	parts := make([]string, len(violations))
	for i, violation := range violations {
		parts[i] = violation.Field + ": " + violation.Description
	}
	return what + ": " + strings.Join(parts, "; ")
}

func (v *Violations) immutable(field string, value any) {
	v.Addf(field, "cannot be changed from %v: make a new object", value)
}
