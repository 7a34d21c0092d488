package client

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// serverTLS requires a client certificate of the files' CA, and uses the present content of the files for each handshake.
func serverTLS(t *testing.T, files Files) *tls.Config {
	t.Helper()
	reloader, err := NewReloader(files, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := reloader.Current()
		return &tls.Config{Certificates: []tls.Certificate{now.Certificate}, ClientCAs: now.Authorities,
			ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}, nil
	}}
}

// handshake makes one connection to a server with these files, and returns the error of either end.
func handshake(t *testing.T, with credentials.TransportCredentials, authority string, files Files) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverTLS(t, files))
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

// ends are the files of a server at 127.0.0.1 and of a client, of one authority.
func ends(t *testing.T) (server, client Files) {
	t.Helper()
	folder, a := t.TempDir(), newAuthority(t)
	server, client = filesIn(folder, "server"), filesIn(folder, "client")
	a.issue(server, "127.0.0.1", time.Hour)
	a.issue(client, "", time.Hour)
	return server, client
}

func TestAClientTrustsTheCAThatItsFileHoldsNow(t *testing.T) {
	first, files := ends(t)
	second, renewed := ends(t)
	with, err := Credentials(files)
	if err != nil {
		t.Fatal(err)
	}
	const authority = "127.0.0.1:7460"
	if err := handshake(t, with, authority, first); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := handshake(t, with, authority, second); err == nil {
		t.Fatal("another CA's server is trusted")
	}
	replace(t, renewed.CA, files.CA)
	replace(t, renewed.Certificate, files.Certificate)
	replace(t, renewed.Key, files.Key)
	for name, with := range map[string]credentials.TransportCredentials{"itself": with, "a clone": with.Clone()} {
		if err := handshake(t, with, authority, second); err != nil {
			t.Errorf("%s, after the CA was renewed: %v", name, err)
		}
		if err := handshake(t, with, authority, first); err == nil {
			t.Errorf("%s: the CA of before is still trusted", name)
		}
	}
}

func TestAClientWantsTheNameThatItDialled(t *testing.T) {
	files, clientFiles := ends(t)
	with, err := Credentials(clientFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, authority := range []string{"127.0.0.2:7460", "controlplane.example.org:7460", "controlplane.example.org"} {
		if err := handshake(t, with, authority, files); err == nil {
			t.Errorf("a server that is 127.0.0.1 was accepted as %s", authority)
		}
	}
	for _, authority := range []string{"127.0.0.1:7460", "127.0.0.1"} {
		if err := handshake(t, with, authority, files); err != nil {
			t.Errorf("%s: %v", authority, err)
		}
	}
}

func TestAnExpiredCertificateFailsTheHandshakeAndIsNamed(t *testing.T) {
	folder, a := t.TempDir(), newAuthority(t)
	server, own := filesIn(folder, "server"), filesIn(folder, "client")
	a.issue(server, "127.0.0.1", time.Hour)
	a.issue(own, "", -time.Minute)
	with, err := Credentials(own)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = with.ClientHandshake(t.Context(), "127.0.0.1:7460", nil)
	if err == nil || !strings.Contains(err.Error(), own.Certificate+" has expired on ") {
		t.Fatal(err)
	}
	write(t, own.Key, "EC PRIVATE KEY", []byte("torn"))
	if _, _, err = with.ClientHandshake(t.Context(), "127.0.0.1:7460", nil); err == nil || !strings.Contains(err.Error(), own.Key) {
		t.Errorf("the file that prevents the renewal is not named: %v", err)
	}
	a.issue(own, "", time.Hour)
	if err := handshake(t, with, "127.0.0.1:7460", server); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
}

// caller answers each call with the serial number of the caller's certificate, as the epoch of a volume.
type caller struct {
	pb.UnimplementedVolumeServiceServer
}

func (caller) GetVolume(ctx context.Context, _ *pb.GetVolumeRequest) (*pb.GetVolumeResponse, error) {
	from, _ := peer.FromContext(ctx)
	info := from.AuthInfo.(credentials.TLSInfo)
	serial := info.State.PeerCertificates[0].SerialNumber
	return &pb.GetVolumeResponse{Volume: &pb.Volume{Status: &pb.VolumeStatus{Epoch: serial.Uint64()}}}, nil
}

func TestAnOpenConnectionChangesItsCertificateOnlyIfItIsToCloseOnRenewal(t *testing.T) {
	for _, closes := range []bool{false, true} {
		folder, a := t.TempDir(), newAuthority(t)
		server, own := filesIn(folder, "server"), filesIn(folder, "client")
		a.issue(server, "127.0.0.1", time.Hour)
		a.issue(own, "", time.Hour)
		address := served(t, "127.0.0.1:0", server, caller{})
		var check time.Duration
		if closes {
			check = time.Millisecond
		}
		with, err := newCredentials(own, check)
		if err != nil {
			t.Fatal(err)
		}
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		volumes := pb.NewVolumeServiceClient(connection)
		serial := func() uint64 {
			answer, err := volumes.GetVolume(t.Context(), &pb.GetVolumeRequest{}, grpc.WaitForReady(true))
			if err != nil {
				return 0 // the connection was closed during the call
			}
			return answer.GetVolume().GetStatus().GetEpoch()
		}
		first := serial()
		a.issue(own, "", time.Hour)
		if !closes {
			if now := serial(); now != first {
				t.Errorf("the certificate changed from %d to %d", first, now)
			}
			continue
		}
		for now := first; now != uint64(a.serial); now = serial() {
			if t.Context().Err() != nil {
				t.Fatalf("the certificate is still %d", now)
			}
		}
	}
}

// served runs a gRPC server with these files until the test ends, and returns its address.
func served(t *testing.T, listen string, files Files, volumes pb.VolumeServiceServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(serverTLS(t, files))))
	pb.RegisterVolumeServiceServer(server, volumes)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}
