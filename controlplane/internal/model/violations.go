package model

import (
	"fmt"
	"strings"
)

// Violation names a field, what is wrong with it and how to mend it.
type Violation struct {
	// Field is a path as in `spec.luns[1].volume`.
	Field       string
	Description string
}

// Violations are all that is wrong with an object; none means valid.
type Violations []Violation

// Add notes one.
func (v *Violations) Add(field, description string) {
	*v = append(*v, Violation{field, description})
}

// Addf notes one, formatted.
func (v *Violations) Addf(field, format string, args ...any) {
	v.Add(field, fmt.Sprintf(format, args...))
}

// reference notes a field that has to name another object and does not.
func (v *Violations) reference(field, name string, kind Kind) {
	if !ValidName(name) {
		v.Addf(field, "must name a %s", kind)
	}
}

// Err is nil where nothing is wrong.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return &InvalidError{v}
}

// InvalidError is an object that cannot be as asked, whatever the other objects are.
type InvalidError struct{ Violations Violations }

func (e *InvalidError) Error() string { return join("invalid", e.Violations) }

// PreconditionError is a change that other objects, or the object's present state, do not allow now.
type PreconditionError struct{ Violations Violations }

func (e *PreconditionError) Error() string { return join("not now", e.Violations) }

// Precondition makes a PreconditionError of one violation.
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
