//go:build tools

// Package kubernetes pins what is built of Kubernetes and etcd for the operator's tests.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
