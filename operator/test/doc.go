// Package test tests the operator against real components: Kubernetes' API server with its etcd, `sluice-controlplane` with its
// own, `sluice-operator` with only the rights of config/rbac, and, if there are pods, `sluice-gateway`. Only scheduler and
// kubelet belong to the test (kubelet_test.go).
package test
