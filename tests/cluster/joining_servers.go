package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/netns"
)

// JoiningServers are control planes with the etcd inside, each at an address of its own of this namespace.
type JoiningServers struct {
	// Program is sluice-controlplane, and Directory exists.
	Program, Directory string
}

// JoiningServer is one of them.
type JoiningServer struct {
	*netns.Process
	Node, Address string
	directory     string
	servers       *JoiningServers
	// members are the peer addresses that it joins.
	members []string
	founder bool
}

// Files names the files of a holder of a certificate.
func (s *JoiningServers) Files(holder string) client.Files {
	at := func(file string) string { return filepath.Join(s.Directory, "certs", file) }
	return client.Files{CA: at("ca.crt"), Certificate: at(holder + ".crt"), Key: at(holder + ".key")}
}

// Server returns the server of a node, which is not started.
func (s *JoiningServers) Server(node, address string) *JoiningServer {
	return &JoiningServer{Node: node, Address: address, directory: filepath.Join(s.Directory, node), servers: s}
}

// PeerAddress and JoinAddress are those of its listeners.
func (j *JoiningServer) PeerAddress() string { return j.Address + ":7467" }

// JoinAddress is where other servers join.
func (j *JoiningServer) JoinAddress() string { return j.Address + ":7468" }

// Found makes the certificates of the system, and starts its first server.
func (j *JoiningServer) Found() error {
	made, err := exec.Command(j.servers.Program, "certs", "--directory", filepath.Join(j.servers.Directory, "certs"), "--host", j.Address).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, made)
	}
	j.founder = true
	return j.Start()
}

// Start starts its process, with the same flags each time.
func (j *JoiningServer) Start() error {
	files := j.ServerFiles()
	arguments := []string{j.servers.Program, "serve", "--node", j.Node, "--data-dir", j.path("data"), "--listen", j.Address + ":7460",
		"--metrics", j.Address + ":7461", "--etcd-peer-address", j.PeerAddress(), "--join-listen", j.JoinAddress(),
		"--tls-ca", files.CA, "--tls-cert", files.Certificate, "--tls-key", files.Key}
	if len(j.members) > 0 {
		arguments = append(arguments, "--etcd-join", strings.Join(j.members, ","))
	}
	j.Process = &netns.Process{Name: j.Node, Arguments: arguments, Log: filepath.Join(j.servers.Directory, j.Node+".log")}
	return j.Process.Start()
}

// ServerFiles names the files of its server certificate.
func (j *JoiningServer) ServerFiles() client.Files {
	if j.founder {
		return j.servers.Files("server")
	}
	return client.Files{CA: j.path("ca.crt"), Certificate: j.path("server.crt"), Key: j.path("server.key")}
}

// Renew asks a server for another certificate, as the holder of a present one.
func (j *JoiningServer) Renew(ctx context.Context, holder client.Files) error {
	connection, err := client.Connect(client.Options{Endpoints: []string{j.Address + ":7460"}, TLS: holder})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	_, request, err := newKey()
	if err != nil {
		return err
	}
	_, err = pb.NewMembershipServiceClient(connection).RenewCertificate(ctx, &pb.RenewCertificateRequest{CertificateRequest: request})
	return err
}

// Restore replaces its store by a backup, as an administrator does with a stopped control plane.
func (j *JoiningServer) Restore(from string) error {
	if err := j.LoseData(); err != nil {
		return err
	}
	said, err := exec.Command(j.servers.Program, "restore", "--from", from, "--data-dir", j.path("data")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func (j *JoiningServer) path(name string) string { return filepath.Join(j.directory, name) }

// LoseData deletes its store. The keys and certificates stay.
func (j *JoiningServer) LoseData() error { return os.RemoveAll(j.path("data/etcd")) }

// Connect returns a connection to its API, as the holder of a certificate.
func (j *JoiningServer) Connect(holder string) (*grpc.ClientConn, error) {
	return client.Connect(client.Options{Endpoints: []string{j.Address + ":7460"}, TLS: j.servers.Files(holder)})
}

// Join joins through another server, and writes what it gets. It also asks for the certificates of gateways.
func (j *JoiningServer) Join(ctx context.Context, text string, through *JoiningServer, gateways ...string) (*pb.JoinResponse, error) {
	token, err := client.ParseJoinToken(text)
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient(through.JoinAddress(), grpc.WithTransportCredentials(token.Credentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	key, request, err := newKey()
	if err != nil {
		return nil, err
	}
	asked := &pb.JoinRequest{Token: text, Node: j.Node, Member: &pb.MemberRequest{PeerAddress: j.PeerAddress(), CertificateRequest: request}}
	for _, gateway := range gateways {
		asked.Gateways = append(asked.Gateways, &pb.GatewayCertificateRequest{Gateway: gateway, CertificateRequest: request})
	}
	response, err := pb.NewJoinServiceClient(connection).Join(ctx, asked)
	if err != nil || response.GetMember() == nil {
		return response, err
	}
	j.members = response.GetMember().GetPeerAddresses()
	contents := map[string]string{"ca.crt": response.GetAuthority(), "server.crt": response.GetMember().GetCertificate(), "server.key": key,
		"data/secrets.key": response.GetMember().GetKeyFile()}
	for _, gateway := range response.GetGateways() {
		contents[gateway.GetGateway()+".crt"], contents[gateway.GetGateway()+".key"] = gateway.GetCertificate(), key
	}
	err = os.MkdirAll(j.path("data"), 0o700)
	for name, content := range contents {
		err = errors.Join(err, os.WriteFile(j.path(name), []byte(content), 0o600))
	}
	return response, err
}

// GatewayFiles names the files of a gateway that it got with its join.
func (j *JoiningServer) GatewayFiles(gateway string) client.Files {
	return client.Files{CA: j.path("ca.crt"), Certificate: j.path(gateway + ".crt"), Key: j.path(gateway + ".key")}
}

func newKey() (key, request string, err error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	raw, err := x509.MarshalECPrivateKey(made)
	if err != nil {
		return "", "", err
	}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, made)
	if err != nil {
		return "", "", err
	}
	text := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return text("EC PRIVATE KEY", raw), text("CERTIFICATE REQUEST", asked), nil
}
