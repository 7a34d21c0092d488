// Package etcdtest gives the tests of a package an etcd that they share.
package etcdtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

// Main runs a package's tests with an etcd, which *shared is until they end, and exits with their code. Each test
// takes a cluster name of its own in it.
func Main(m *testing.M, shared **etcd.Embedded) {
	directory, err := os.MkdirTemp("", "sluice-etcd")
	if err == nil {
		*shared, err = etcd.StartEmbedded(context.Background(), directory, zap.NewNop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	(*shared).Close()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}
