package join_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/join"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// members is a cluster of which a test decides how it answers.
type members struct {
	present  []etcd.Member
	admitted []string
	refusal  error
}

func (m *members) Members(context.Context) ([]etcd.Member, error) { return m.present, nil }

func (m *members) Admit(_ context.Context, _, address, _ string) ([]string, error) {
	if m.refusal != nil {
		return nil, m.refusal
	}
	m.admitted = append(m.admitted, address)
	return []string{"192.0.2.1:7467"}, nil
}

func (m *members) Remove(context.Context, string) error { return m.refusal }

// system has both services of a store of its own.
type system struct {
	*join.Membership
	t       *testing.T
	join    *join.Join
	members *members
	now     time.Time
	certs   string
	ring    *keyring.Keyring
}

// start returns a system whose store has its authority.
func start(t *testing.T) *system {
	t.Helper()
	s := bare(t)
	if _, err := s.ImportAuthority(t.Context(), s.authority()); err != nil {
		t.Fatal(err)
	}
	return s
}

// bare returns a system whose store has no authority.
func bare(t *testing.T) *system {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, members: &members{}, now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), certs: t.TempDir(), ring: ring}
	if _, err := certs.OpenAuthority(s.certs); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring,
		Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	options := join.Options{Store: kept, Embedded: s.members, ClusterName: "default", KeyFile: ring.Text(), Log: slog.New(slog.DiscardHandler),
		Self:   store.Server{Node: "a", PeerAddress: "192.0.2.1:7467", APIAddress: "192.0.2.1:7460", JoinAddress: "192.0.2.1:7468"},
		Trusts: func([]byte) error { return nil }, Role: func(context.Context) string { return "gateway" }}
	s.Membership, s.join = &join.Membership{Options: options}, &join.Join{Options: options}
	s.members.present = []etcd.Member{{Node: "a", Address: "192.0.2.1:7467", Reachable: true}}
	if err := kept.SetServer(t.Context(), options.Self); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *system) file(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.certs, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *system) authority() *pb.ImportAuthorityRequest {
	return &pb.ImportAuthorityRequest{Certificate: s.file(certs.CAFile), PrivateKey: s.file("ca.key")}
}

func (s *system) token() string {
	s.t.Helper()
	made, err := s.CreateJoinToken(s.t.Context(), &pb.CreateJoinTokenRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return made.GetToken()
}

func (s *system) joins(request *pb.JoinRequest) *pb.JoinResponse {
	s.t.Helper()
	response, err := s.join.Join(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// refused tests that an error has a code and a text.
func refused(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("got %v, want %s with %q", err, code, text)
	}
}

// certificateRequest asks for the identity of an administrator of another host.
func certificateRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "admin", Organization: []string{"sluice:admin"}}, DNSNames: []string{"elsewhere"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}))
}

func parsed(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatalf("%q is no certificate", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// calledWith returns the context of a call over a connection with a certificate.
func calledWith(ctx context.Context, certificate *x509.Certificate) context.Context {
	return peer.NewContext(ctx, &peer.Peer{AuthInfo: credentials.TLSInfo{
		State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}}})
}

func gatewayRequest(t *testing.T, name string) *pb.GatewayCertificateRequest {
	t.Helper()
	return &pb.GatewayCertificateRequest{Gateway: name, CertificateRequest: certificateRequest(t)}
}

// gateway creates a Gateway of a node, with its pool and fabric.
func (s *system) gateway(name, node string) {
	s.t.Helper()
	ctx := s.t.Context()
	if err := errors.Join(s.Store.Fabrics.Create(ctx, &model.Fabric{Meta: model.Meta{Name: "red"}}, false),
		s.Store.GatewayPools.Create(ctx, &model.GatewayPool{Meta: model.Meta{Name: "default"}, Spec: model.GatewayPoolSpec{Fabrics: []string{"red"}}}, false),
		s.Store.Gateways.Create(ctx, gatewayOf(name, node), false)); err != nil {
		s.t.Fatal(err)
	}
}

func gatewayOf(name, node string) *model.Gateway {
	return &model.Gateway{Meta: model.Meta{Name: name}, Spec: model.GatewaySpec{GatewayPool: "default", Node: node,
		ForwardingAddress: "192.0.2.7:3261", Portals: []model.Portal{{Listen: "192.0.2.7:3260", Fabric: "red"}}}}
}
