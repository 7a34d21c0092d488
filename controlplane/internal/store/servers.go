package store

import (
	"context"
	"time"
)

// Server is the record of a member of the embedded etcd: what etcd does not know about it.
type Server struct {
	Node        string `json:"node"`
	PeerAddress string `json:"peerAddress"`
	// APIAddress and JoinAddress are host:port; empty: the member has not started yet, or has no join listener.
	APIAddress  string `json:"apiAddress,omitempty"`
	JoinAddress string `json:"joinAddress,omitempty"`
	// PublicKey is the SHA-256 of the public key with which it joined, in hexadecimal digits; empty: it founded the system.
	PublicKey string `json:"publicKey,omitempty"`
	// AdministratorKey is that of the administrator's certificate that the join gave; empty: none.
	AdministratorKey string `json:"administratorKey,omitempty"`
	// Joined is when it joined, to the second; zero: it founded the system, or joined by an earlier release.
	Joined time.Time `json:"joined,omitzero"`
}

func (s *Store) serverPrefix() string { return s.prefix + "servers/" }

// SetServer stores the record of a server, and deletes those of other nodes with its peer address. Without a public key the record keeps
// what the present one says about the join.
func (s *Store) SetServer(ctx context.Context, server Server) error {
	known, err := s.Servers(ctx)
	if err != nil {
		return err
	}
	for _, old := range known {
		if old.Node == server.Node && server.PublicKey == "" {
			server.PublicKey, server.AdministratorKey, server.Joined = old.PublicKey, old.AdministratorKey, old.Joined
		}
		if old.PeerAddress == server.PeerAddress && old.Node != server.Node {
			if err := s.DeleteServer(ctx, old.Node); err != nil {
				return err
			}
		}
	}
	return s.putRecord(ctx, s.serverPrefix()+server.Node, server)
}

// Servers returns all records, also of former members, in the order of their nodes.
func (s *Store) Servers(ctx context.Context) ([]Server, error) {
	return readRecords[Server](ctx, s, s.serverPrefix())
}

// DeleteServer deletes the record of a server.
func (s *Store) DeleteServer(ctx context.Context, node string) error {
	if _, err := s.client.Delete(ctx, s.serverPrefix()+node); err != nil {
		return committing(err)
	}
	return nil
}

// JoinedGateway is the record of the last certificate that a join gave to a gateway.
type JoinedGateway struct {
	Node string `json:"node"`
	// PublicKey is the SHA-256 of its public key, in hexadecimal digits.
	PublicKey string `json:"publicKey"`
	// Joined is when it joined, to the second; zero: by an earlier release.
	Joined time.Time `json:"joined,omitzero"`
}

func (s *Store) joinedGatewayKey(name string) string { return s.prefix + "joined-gateways/" + name }

// JoinedGateway returns the record of a gateway; the zero value: it has joined never.
func (s *Store) JoinedGateway(ctx context.Context, name string) (JoinedGateway, error) {
	// The end of the name is marked, so that gw-1 does not find gw-10.
	found, err := readRecords[JoinedGateway](ctx, s, s.joinedGatewayKey(name)+"/")
	if err != nil || len(found) == 0 {
		return JoinedGateway{}, err
	}
	return found[0], nil
}

// SetJoinedGateway stores the record of a gateway.
func (s *Store) SetJoinedGateway(ctx context.Context, name string, joined JoinedGateway) error {
	return s.putRecord(ctx, s.joinedGatewayKey(name)+"/", joined)
}
