package etcd_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

func TestEmbeddedKeepsWhatWasStoredOverARestart(t *testing.T) {
	directory, ctx := t.TempDir(), context.Background()
	first, err := etcd.StartEmbedded(ctx, directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Client.Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	first.Close()

	second, err := etcd.StartEmbedded(ctx, directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	got, err := second.Client.Get(ctx, "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Fatalf("after the restart: %v, %v", got, err)
	}
}

func TestConnectRefusesAPlainConnectionOverANetwork(t *testing.T) {
	_, err := etcd.Connect(context.Background(), etcd.External{Endpoints: []string{"192.0.2.1:2379"}}, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Fatalf("got %v, wanted a refusal that names TLS", err)
	}
}

func TestConnectNamesEndpointsThatDoNotAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := etcd.Connect(ctx, etcd.External{Endpoints: []string{"127.0.0.1:1"}}, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatalf("got %v, wanted the endpoint named", err)
	}
}
