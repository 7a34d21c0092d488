// Package api serves the public gRPC API, one file per noun: it turns messages into the model's objects and back, asks the
// store, and turns errors into statuses that name the field. It holds no state.
package api
