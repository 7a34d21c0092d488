// Package controlplane is the operator's way to the control plane: its public gRPC API, one Noun for each kind, and what an
// error of it means to whoever wrote a resource.
package controlplane
