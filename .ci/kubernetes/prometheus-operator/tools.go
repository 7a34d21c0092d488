//go:build tools

// Package operator pins Prometheus' operator for the end-to-end test, and the definitions of its kinds for the charts' tests.
package operator

import (
	_ "github.com/prometheus-operator/prometheus-operator/cmd/operator"
	_ "github.com/prometheus-operator/prometheus-operator/cmd/prometheus-config-reloader"
)
