// Package model has the objects of the control plane, their validation, and their legal changes. It imports no other package of
// Sluice and does no I/O: it knows no store, no wire format and no clock, so tests need only values.
//
// The store keeps objects as they are declared here, in JSON (see package store), so renaming a field requires a migration.
package model
