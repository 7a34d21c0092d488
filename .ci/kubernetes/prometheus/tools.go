//go:build tools

// Package prometheus pins Prometheus for the end-to-end test.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
