package etcd_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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

func TestABackupIsRestoredAndOldPositionsAreKnownToBeGone(t *testing.T) {
	ctx := t.Context()
	first, err := etcd.StartEmbedded(ctx, t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	put, err := first.Client.Put(ctx, "key", "value")
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	from, err := first.Client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(backup, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Client.Put(ctx, "key", "after the backup"); err != nil {
		t.Fatal(err)
	}

	directory := t.TempDir()
	now := time.Now()
	if err := etcd.Restore(backup, directory, now); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(backup, directory, now); err == nil {
		t.Fatal("restored over data that was there")
	}
	second, err := etcd.StartEmbedded(ctx, directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	got, err := second.Client.Get(ctx, "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Fatalf("after the restore: %v, %v", got, err)
	}
	watched := <-second.Client.Watch(ctx, "key", clientv3.WithRev(put.Header.Revision+1))
	if watched.CompactRevision == 0 {
		t.Fatalf("a position of before the restore was taken for one of now: %+v", watched)
	}
	if got.Header.Revision < now.UnixMilli() {
		t.Fatalf("revisions go on from %d: restored from the same backup an hour later, some would come again", got.Header.Revision)
	}
}

func TestABrokenBackupIsRefused(t *testing.T) {
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(backup, []byte("not a backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(backup, t.TempDir(), time.Now()); err == nil {
		t.Fatal("restored from nonsense")
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
