package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/join"
	"sluice.dev/sluice/proto/client"
)

// memberSettings returns the settings of a member with certificates, at an address that is free.
func memberSettings(t *testing.T) *settings {
	t.Helper()
	directory := t.TempDir()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(certs.Leaf{File: "server", CommonName: certs.ServerName, Role: "server", Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return &settings{dataDir: t.TempDir(), peerAddress: listener.Addr().String(), tls: client.Files{
		CA: filepath.Join(directory, certs.CAFile), Certificate: filepath.Join(directory, "server.crt"), Key: filepath.Join(directory, "server.key")}}
}

func (s *settings) members(t *testing.T) []etcd.Member {
	t.Helper()
	embedded, err := s.startEmbedded(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	members, err := embedded.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return members
}

func TestWithoutAPeerAddressTheEmbeddedEtcdHasNoAddress(t *testing.T) {
	s := &settings{dataDir: t.TempDir()}
	if members := s.members(t); len(members) != 1 || members[0].Address != "" {
		t.Errorf("members: %+v", members)
	}
}

func TestWithoutMembersToJoinAServerFoundsASystemUnderItsHostName(t *testing.T) {
	s := memberSettings(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if members := s.members(t); len(members) != 1 || members[0].Address != s.peerAddress || members[0].Node != host || members[0].Learner {
		t.Errorf("members: %+v", members)
	}
	s.node = "a"
	if members := s.members(t); len(members) != 1 || members[0].Node != "a" {
		t.Errorf("with --node a: %+v", members)
	}
}

func TestWithoutAJoinAddressNoPortIsOpened(t *testing.T) {
	s := memberSettings(t)
	closeJoins, err := s.serveJoins(nil, join.Options{}, slog.New(slog.DiscardHandler)) // a listener would need a server
	if err != nil {
		t.Fatal(err)
	}
	closeJoins()
	if self := s.self(); self.JoinAddress != "" {
		t.Errorf("the record names %q for joins", self.JoinAddress)
	}
}

func TestFlagsOfAMemberThatContradictOthersAreRefused(t *testing.T) {
	for want, s := range map[string]*settings{
		"give one of them":                 {peerAddress: "192.0.2.1:7467", etcdEndpoints: []string{"https://192.0.2.1:2379"}},
		"--join-listen needs TLS":          {joinListen: "192.0.2.1:7468", insecure: true},
		"--etcd-peer-address needs TLS":    {peerAddress: "192.0.2.1:7467", insecure: true},
		"--etcd-join needs --etcd-peer-ad": {etcdJoin: []string{"192.0.2.1:7467"}},
	} {
		if err := s.checkMember(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// With a key of its own it could not read the secrets of the store.
func TestAMemberThatJoinsWithoutTheKeysOfTheOthersIsRefusedAndMakesNone(t *testing.T) {
	s := memberSettings(t)
	s.etcdJoin = []string{"127.0.0.1:1"}
	if _, err := s.startEmbedded(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "secrets.key is missing") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dataDir, keyFileName)); err == nil {
		t.Error("it made a key")
	}
}

func TestAListenerOnAllAddressesIsReachedAtTheHostOfThePeerAddressOrByTheNode(t *testing.T) {
	member, alone := &settings{node: "a", peerAddress: "192.0.2.1:7467"}, &settings{node: "a"}
	for listener, want := range map[string][2]string{
		"0.0.0.0:7460": {"192.0.2.1:7460", "a:7460"}, "[::]:7460": {"192.0.2.1:7460", "a:7460"}, ":7460": {"192.0.2.1:7460", "a:7460"},
		"192.0.2.7:7460": {"192.0.2.7:7460", "192.0.2.7:7460"}, "b:7460": {"b:7460", "b:7460"},
	} {
		if got := [2]string{member.reachable(listener), alone.reachable(listener)}; got != want {
			t.Errorf("%s: %q, want %q", listener, got, want)
		}
	}
}
