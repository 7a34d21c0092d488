// Package api serves the public gRPC API, one file per kind. It converts messages to the model's objects and back, calls the
// store, and converts errors to statuses that name the field. It has no state.
package api
