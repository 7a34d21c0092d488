package etcd_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
)

// servers are the members of one cluster, each with a directory and an address of its own.
type servers struct {
	t     *testing.T
	certs string
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{t: t, certs: t.TempDir()}
	s.issue(certs.Leaf{File: "server", CommonName: certs.ServerName, Role: "server", Hosts: []string{"127.0.0.1"}})
	s.issue(certs.Leaf{File: "gateway", CommonName: "gw-1", Role: "gateway"})
	s.issue(certs.Leaf{File: "admin", CommonName: "admin", Role: "admin"})
	return s
}

func (s *servers) issue(leaf certs.Leaf) {
	s.t.Helper()
	authority, err := certs.OpenAuthority(s.certs)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := authority.Issue(leaf); err != nil {
		s.t.Fatal(err)
	}
}

// forServersOnly makes a server certificate as an earlier release did, with the key of the authority.
func (s *servers) forServersOnly() string {
	s.t.Helper()
	pair, err := tls.LoadX509KeyPair(s.file(certs.CAFile), s.file("ca.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{CommonName: certs.ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, pair.Leaf, pair.Leaf.PublicKey, pair.PrivateKey)
	if err != nil {
		s.t.Fatal(err)
	}
	path := s.file("old.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *servers) file(name string) string { return filepath.Join(s.certs, name) }

// peering returns the settings of a new member.
func (s *servers) peering(node string, join ...string) etcd.Peering {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	return etcd.Peering{Node: node, Address: address, Join: join, CA: s.file(certs.CAFile), Certificate: s.file("server.crt"),
		Key: s.file("server.key"), CommonName: certs.ServerName, Waiting: func(reason string) { s.t.Log(node, reason) }}
}

// member is a running member.
type member struct {
	*etcd.Embedded
	directory string
	peering   etcd.Peering
}

func (s *servers) start(directory string, peering etcd.Peering) *member {
	s.t.Helper()
	embedded, err := etcd.StartMember(s.t.Context(), directory, peering, zap.NewNop())
	if err != nil {
		s.t.Fatal(err)
	}
	return &member{embedded, directory, peering}
}

// join admits and starts another member.
func (s *servers) join(first *member, node string) *member {
	s.t.Helper()
	peering := s.peering(node)
	peering.Join = s.admit(first, node, peering.Address)
	return s.start(s.t.TempDir(), peering)
}

// admit repeats until the members permit it: they do so some seconds after the last change.
func (s *servers) admit(first *member, node, address string) []string {
	s.t.Helper()
	for {
		others, err := first.Admit(s.t.Context(), node, address, "")
		if err == nil {
			return others
		}
		if !errors.Is(err, etcd.ErrNotNow) {
			s.t.Fatal(err)
		}
	}
}

func get(t *testing.T, from *etcd.Embedded, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := from.Client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

func put(t *testing.T, into *etcd.Embedded, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := into.Client.Put(ctx, key, value); err != nil {
		t.Fatal(err)
	}
}

// A store that was founded without listener gets its members later.
func TestTwoMembersJoinAStoreOfOneAndEachHasAllDataAndVotes(t *testing.T) {
	t.Parallel()
	s, directory := newServers(t), t.TempDir()
	alone, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	put(t, alone, "before", "kept")
	if _, err := alone.Admit(t.Context(), "b", "127.0.0.1:1", ""); !errors.Is(err, etcd.ErrNoPeering) {
		t.Errorf("without listener it admits: %v", err)
	}
	alone.Close()

	a := s.start(directory, s.peering("a"))
	b := s.join(a, "b")
	defer b.Close()
	c := s.join(a, "c")
	defer c.Close()
	if _, err := a.Admit(t.Context(), "d", "127.0.0.1:1", ""); !errors.Is(err, etcd.ErrMembersFull) {
		t.Errorf("a fourth member is admitted: %v", err)
	}
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []*member{a, b, c} {
		if got := members[i]; got.Node != want.peering.Node || got.Address != want.peering.Address || got.Learner || !got.Reachable {
			t.Errorf("member %d is %+v", i, got)
		}
	}
	a.Close() // the founder is not needed
	put(t, b.Embedded, "after", "kept")
	for _, key := range []string{"before", "after"} {
		if get(t, c.Embedded, key) != "kept" {
			t.Errorf("%s is lost", key)
		}
	}
	if members, err = c.Members(t.Context()); err != nil || members[0].Reachable {
		t.Errorf("a stopped member is reachable: %+v, %v", members, err)
	}

	a = s.start(directory, a.peering)
	defer a.Close()
	if get(t, a.Embedded, "after") != "kept" {
		t.Error("the restarted member lacks a change")
	}
}

func TestAMemberThatWasRemovedDoesNotReturn(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	a := s.start(t.TempDir(), s.peering("a"))
	defer a.Close()
	if err := a.Remove(t.Context(), a.peering.Address); !errors.Is(err, etcd.ErrLastMember) {
		t.Errorf("the only member is removed: %v", err)
	}
	b := s.join(a, "b")
	for err := etcd.ErrNotNow; errors.Is(err, etcd.ErrNotNow); { // some seconds after the last change
		// The member that is removed can stop before it answers, so the other one is called.
		if err = a.Remove(t.Context(), b.peering.Address); err != nil && !errors.Is(err, etcd.ErrNotNow) {
			t.Fatal(err)
		}
	}
	select {
	case err := <-b.Failed():
		if err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("it fails with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a removed member continues")
	}
	b.Close()
	put(t, a.Embedded, "after", "removal")
	if _, err := etcd.StartMember(t.Context(), b.directory, b.peering, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("with its data it returns: %v", err)
	}
	if _, err := etcd.StartMember(t.Context(), t.TempDir(), b.peering, zap.NewNop()); err == nil ||
		!strings.Contains(err.Error(), "has no member at") {
		t.Errorf("without its data it returns: %v", err)
	}
}

// An empty voter would confirm changes that it then does not have.
func TestAMemberThatLostItsDataIsRefusedUntilItWasRemoved(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	a := s.start(t.TempDir(), s.peering("a"))
	defer a.Close()
	b := s.join(a, "b")
	b.Close()
	var lost *etcd.DirectoryLostError
	if _, err := etcd.StartMember(t.Context(), t.TempDir(), b.peering, zap.NewNop()); !errors.As(err, &lost) || lost.Node != "b" {
		t.Errorf("an empty member starts: %v", err)
	}
	var exists *etcd.MemberExistsError
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // without b there is no majority
	defer cancel()
	if _, err := a.Admit(ctx, "b", b.peering.Address, ""); err == nil {
		t.Error("without a majority a member is admitted")
	}
	b = s.start(b.directory, b.peering) // its data suffices
	defer b.Close()
	for _, address := range []string{b.peering.Address, "127.0.0.1:1"} {
		if _, err := a.Admit(t.Context(), "b", address, ""); !errors.As(err, &exists) {
			t.Errorf("a member with data is admitted again at %s: %v", address, err)
		}
	}
}

func TestAnAdmissionIsRepeatedAndAnotherAddressReplacesAMemberThatNeverStarted(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	a := s.start(t.TempDir(), s.peering("a"))
	defer a.Close()
	for range 2 {
		if others, err := a.Admit(t.Context(), "b", "127.0.0.1:1", ""); err != nil || !slices.Equal(others, []string{a.peering.Address}) {
			t.Fatalf("%v, %v", others, err)
		}
	}
	if _, err := a.Admit(t.Context(), "b", "127.0.0.1:2", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	members, err := a.Members(t.Context())
	if err != nil || len(members) != 2 || members[0].Address != "127.0.0.1:2" || !members[0].Learner || members[0].Reachable {
		t.Errorf("members: %+v, %v", members, err)
	}
}

// Both would have the ids of the first one if the founding had no random part.
func TestAStoreThatIsFoundedAgainAtAnAddressIsAnotherCluster(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	peering := s.peering("a")
	ids := map[uint64]bool{}
	for range 2 {
		founded := s.start(t.TempDir(), peering)
		got, err := founded.Client.MemberList(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids[got.Header.GetClusterId()], ids[got.Members[0].ID] = true, true
		founded.Close()
	}
	if len(ids) != 4 {
		t.Error("the cluster that is founded again has an id of the former one")
	}
}

func TestThePeerPortAcceptsOnlyCertificatesOfServers(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	a := s.start(t.TempDir(), s.peering("a"))
	defer a.Close()
	text, err := os.ReadFile(s.file(certs.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	ask := func(own ...tls.Certificate) error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: own}}}
		answer, err := client.Get("https://" + a.peering.Address + "/members")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	for _, holder := range []string{"server", "gateway", "admin"} {
		pair, err := tls.LoadX509KeyPair(s.file(holder+".crt"), s.file(holder+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(pair); (err == nil) != (holder == "server") {
			t.Errorf("the certificate of a %s: %v", holder, err)
		}
	}
	if err := ask(); err == nil {
		t.Error("a client without a certificate is accepted")
	}
}

func TestAPeeringThatCannotWorkIsRefusedWithTheFlagAndTheRemedy(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for want, change := range map[string]func(*etcd.Peering){
		"is not host:port":             func(p *etcd.Peering) { p.Address = "127.0.0.1" },
		"names no host":                func(p *etcd.Peering) { p.Address = "0.0.0.0:7467" },
		"--etcd-join":                  func(p *etcd.Peering) { p.Join = []string{"b"} },
		"needs --tls-ca":               func(p *etcd.Peering) { p.CA = "" },
		`common name "gw-1"`:           func(p *etcd.Peering) { p.Certificate, p.Key = s.file("gateway.crt"), s.file("gateway.key") },
		"does not name the host":       func(p *etcd.Peering) { p.Address = "192.0.2.1:7467" },
		"no member of --etcd-join":     func(p *etcd.Peering) { p.Join = []string{"127.0.0.1:1"} },
		"names only this server":       func(p *etcd.Peering) { p.Join = []string{p.Address} },
		`lacks the usage "clientAuth"`: func(p *etcd.Peering) { p.Certificate, p.Key = s.forServersOnly(), s.file("ca.key") },
	} {
		peering := s.peering("a")
		change(&peering)
		if _, err := etcd.StartMember(t.Context(), t.TempDir(), peering, zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
