package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/internal/join"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
)

// joinOptions returns what both services about servers need.
func (s *settings) joinOptions(kept *store.Store, opened *storage, ring *keyring.Keyring, log *slog.Logger) join.Options {
	options := join.Options{
		Store: kept, ClusterName: s.cluster, KeyFile: ring.Text(), Self: s.self(), Trusts: s.trusts, Log: log,
		Role: func(ctx context.Context) string { return string(server.IdentityOf(ctx).Role) },
	}
	if opened.embedded != nil {
		options.Embedded = opened.embedded
	}
	return options
}

// self returns the record of this server, with the addresses at which others reach it.
func (s *settings) self() store.Server {
	self := store.Server{Node: s.nodeName(), PeerAddress: s.peerAddress, APIAddress: s.reachable(s.listen)}
	if s.joinListen != "" {
		self.JoinAddress = s.reachable(s.joinListen)
	}
	return self
}

// reachable returns the address at which others reach a listener. A listener on all addresses is reached at the host of the peer address,
// or by the name of the node.
func (s *settings) reachable(listener string) string {
	host, port, err := net.SplitHostPort(listener)
	if err != nil {
		return listener
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return listener
	}
	if own, _, err := net.SplitHostPort(s.peerAddress); err == nil {
		return net.JoinHostPort(own, port)
	}
	return net.JoinHostPort(s.nodeName(), port)
}

// trusts returns why this process does not accept certificates of an authority (DER), with the remedy.
func (s *settings) trusts(authority []byte) error {
	if s.insecure {
		return errors.New("this control plane runs with --insecure, so it uses no certificates: start it with --tls-ca, --tls-cert and --tls-key")
	}
	text, err := os.ReadFile(s.tls.CA)
	if err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if known, err := x509.ParseCertificate(block.Bytes); err == nil && string(known.Raw) == string(authority) {
			return nil
		}
	}
	return fmt.Errorf("the control plane does not accept certificates of this authority: %s (--tls-ca) lacks it. Give the authority that "+
		"signed the present certificates, or add this one to the file of every server first", s.tls.CA)
}

// serveJoins opens the join listener, if there is one. The function that it returns closes it.
func (s *settings) serveJoins(made *server.Server, options join.Options, log *slog.Logger) (func(), error) {
	if s.joinListen == "" {
		return func() {}, nil
	}
	joins, err := made.NewJoinListener(s.tls, &join.Join{Options: options})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", s.joinListen)
	if err != nil {
		return nil, fmt.Errorf("--join-listen: %w", err)
	}
	log.Info("servers can join", "address", listener.Addr().String())
	go func() {
		if err := joins.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Error("servers can no longer join", "problem", err)
		}
	}()
	return joins.Stop, nil
}
