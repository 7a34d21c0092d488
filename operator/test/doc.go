// Package test proves the operator against real parts: Kubernetes' API server with its etcd, `sluice-controlplane` with its own,
// `sluice-operator` with no more rights than config/rbac gives it, and, where there are pods, `sluice-gateway`. Only scheduler and
// kubelet are the test's own (kubelet_test.go).
package test
