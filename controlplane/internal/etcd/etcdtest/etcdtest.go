// Package etcdtest provides an etcd that the tests of a package share.
package etcdtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

// Main runs a package's tests with an etcd, which is in *shared until they end, and exits with their code. Each test uses a
// separate cluster name in it.
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

// Start starts a separate etcd for a test, with other settings and without listeners.
func Start(t *testing.T, change func(*embed.Config)) *clientv3.Client {
	t.Helper()
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.ListenClientUrls, config.ListenPeerUrls = nil, nil
	config.InitialCluster = config.Name + "=" + config.AdvertisePeerUrls[0].String()
	change(config)
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not get ready")
	}
	client := v3client.New(server.Server)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
