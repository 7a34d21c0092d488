package server

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"sluice.dev/sluice/controlplane/internal/certs"
)

// issued are the files of an authority of its own, below a directory.
func issued(t *testing.T, directory string) (serverFiles, clientFiles Files) {
	t.Helper()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{{File: "server", CommonName: "etcd", Role: "server", Hosts: []string{"127.0.0.1"}},
		{File: "client", CommonName: "controlplane", Role: "admin"}} {
		if err := authority.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	files := func(name string) Files {
		return Files{CA: filepath.Join(directory, certs.CAFile), Certificate: filepath.Join(directory, name+".crt"),
			Key: filepath.Join(directory, name+".key")}
	}
	return files("server"), files("client")
}

// copied puts files in the place of others, as a renewal does.
func copied(t *testing.T, from, to Files) {
	t.Helper()
	for source, place := range map[string]string{from.CA: to.CA, from.Certificate: to.Certificate, from.Key: to.Key} {
		text, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(place, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// shaken makes one connection to a server that has those files, and says what either end found wrong.
func shaken(t *testing.T, with credentials.TransportCredentials, authority string, files Files) error {
	t.Helper()
	config, err := ServerTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	found := make(chan error, 1)
	go func() {
		accepted, err := listener.Accept()
		if err == nil {
			err = accepted.(*tls.Conn).HandshakeContext(context.Background())
			_ = accepted.Close()
		}
		found <- err
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if _, _, err := with.ClientHandshake(ctx, authority, raw); err != nil {
		return err
	}
	return <-found
}

func TestAClientTrustsTheCAThatItsFileHoldsNow(t *testing.T) {
	first, files := issued(t, t.TempDir())
	second, renewedFiles := issued(t, t.TempDir())
	with, err := ClientCredentials(files)
	if err != nil {
		t.Fatal(err)
	}
	const authority = "127.0.0.1:2379"
	if err := shaken(t, with, authority, first); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := shaken(t, with, authority, second); err == nil {
		t.Fatal("another CA's server is trusted")
	}
	copied(t, renewedFiles, files)
	clone := with.Clone() // as gRPC makes one for each connection
	with.(*renewed).kept.at = time.Time{}
	for name, with := range map[string]credentials.TransportCredentials{"itself": with, "a clone": clone} {
		if err := shaken(t, with, authority, second); err != nil {
			t.Errorf("%s, after the CA was renewed: %v", name, err)
		}
	}
	stale, _ := issued(t, t.TempDir())
	if err := shaken(t, with, authority, stale); err == nil {
		t.Error("the server of a CA that is none of ours is trusted")
	}
}

func TestAClientWantsTheNameThatItDialled(t *testing.T) {
	files, clientFiles := issued(t, t.TempDir())
	with, err := ClientCredentials(clientFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, authority := range []string{"127.0.0.2:2379", "etcd.example.org:2379", "etcd.example.org"} {
		if err := shaken(t, with, authority, files); err == nil {
			t.Errorf("a server that is 127.0.0.1 was taken for %s", authority)
		}
	}
	for _, authority := range []string{"127.0.0.1:2379", "127.0.0.1"} {
		if err := shaken(t, with, authority, files); err != nil {
			t.Errorf("%s: %v", authority, err)
		}
	}
}
