package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
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

// An etcd that requires certificates, as an external one does.
func TestConnectMakesEveryConnectionByTheCredentialsGiven(t *testing.T) {
	directory := t.TempDir()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(certs.Leaf{File: "etcd", CommonName: "etcd", Role: "server", Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(certs.Leaf{File: "client", CommonName: "controlplane", Role: "admin"}); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(directory, name) }
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "https://" + free.Addr().String()
	_ = free.Close()
	etcdtest.Start(t, func(config *embed.Config) {
		at, _ := url.Parse(endpoint)
		config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*at}, []url.URL{*at}
		info := &config.ClientTLSInfo
		info.CertFile, info.KeyFile, info.TrustedCAFile, info.ClientCertAuth = file("etcd.crt"), file("etcd.key"), file(certs.CAFile), true
	})
	pair, err := tls.LoadX509KeyPair(file("client.crt"), file("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file(certs.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	client, err := etcd.Connect(t.Context(), etcd.External{Endpoints: []string{endpoint},
		TLS: credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Connect(t.Context(), etcd.External{Endpoints: []string{endpoint}}, zap.NewNop()); err == nil {
		t.Error("reached without credentials")
	}
}
