package server

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/proto/client"
)

// issued returns the files of a new authority, below a directory.
func issued(t *testing.T, directory string) (serverFiles, clientFiles client.Files) {
	t.Helper()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{{File: "server", CommonName: "controlplane", Role: "server", Hosts: []string{"127.0.0.1"}},
		{File: "client", CommonName: "ann", Role: "admin"}} {
		if err := authority.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	files := func(name string) client.Files {
		return client.Files{CA: filepath.Join(directory, certs.CAFile), Certificate: filepath.Join(directory, name+".crt"),
			Key: filepath.Join(directory, name+".key")}
	}
	return files("server"), files("client")
}

// copied replaces files by others, as a renewal does.
func copied(t *testing.T, from, to client.Files) {
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

// shaken makes one connection with a client's files to a server with this configuration, and returns the error of either end.
func shaken(t *testing.T, config *tls.Config, files client.Files) error {
	t.Helper()
	with, err := client.Credentials(files)
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
	if _, _, err := with.ClientHandshake(ctx, "127.0.0.1:7460", raw); err != nil {
		return err
	}
	return <-found
}

func TestTheServerShowsAndAcceptsWhatItsFilesHoldNow(t *testing.T) {
	files, firstClient := issued(t, t.TempDir())
	renewed, secondClient := issued(t, t.TempDir())
	reloader, err := client.NewReloader(files, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := serverTLS(reloader, tls.RequireAndVerifyClientCert, "h2")
	if err := shaken(t, config, firstClient); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := shaken(t, config, secondClient); err == nil {
		t.Fatal("another CA's client is accepted")
	}
	copied(t, renewed, files)
	if err := shaken(t, config, secondClient); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
	if err := shaken(t, config, firstClient); err == nil {
		t.Error("after the renewal a client of the former CA is accepted")
	}
}

func TestTheServerAcceptsNoClientOfAnotherCA(t *testing.T) {
	files, ours := issued(t, t.TempDir())
	_, strangers := issued(t, t.TempDir())
	config, err := ServerTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	if err := shaken(t, config, ours); err != nil {
		t.Errorf("our client: %v", err)
	}
	strangers.CA = files.CA // it trusts the server, but the server must not trust it
	if err := shaken(t, config, strangers); err == nil {
		t.Error("a client of another CA is accepted")
	}
}
