package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// Clock returns the present time. Tests pass their own.
type Clock func() time.Time

// Store is the control plane's state. It is safe for concurrent use.
type Store struct {
	client  *clientv3.Client
	groups  *groups
	prefix  string
	keyring *keyring.Keyring
	now     Clock
	oui     uint32
	system  string

	Volumes      *Collection[*model.Volume]
	Targets      *Collection[*model.Target]
	Hosts        *Collection[*model.Host]
	Snapshots    *Collection[*model.Snapshot]
	StoragePools *Collection[*model.StoragePool]
	Gateways     *Collection[*model.Gateway]
	GatewayPools *Collection[*model.GatewayPool]
	Fabrics      *Collection[*model.Fabric]

	collections map[model.Kind]collection
}

// Options configure a store.
type Options struct {
	// Cluster names the system: several may share an etcd. Letters, digits, '-' and '.'.
	Cluster string
	// Keyring encrypts secrets; required.
	Keyring *keyring.Keyring
	// Now defaults to time.Now.
	Now Clock
	// OUI is the IEEE company id for device identities of new volumes, or 0.
	OUI uint32
	// SystemID is the id that the store must have; empty: any. Open generates an id for a store without one only if this is empty.
	SystemID string
}

// Open binds a store to an etcd, checks that this program knows its layout, and migrates an older one. The caller remains
// responsible for closing the client. Errors: SchemaError, WrongSystemError, MissingKeysError, WrongKeyError.
func Open(ctx context.Context, client *clientv3.Client, options Options) (*Store, error) {
	if options.Keyring == nil {
		return nil, errors.New("a store needs a keyring: secrets are not kept in the clear")
	}
	s, err := bind(ctx, client, options)
	if err != nil {
		return nil, err
	}
	if err := s.checkSystem(ctx, options.SystemID); err != nil {
		return nil, err
	}
	if err := s.checkKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.resealAuthority(ctx); err != nil {
		return nil, err
	}
	if err := s.initSystem(ctx, ""); err != nil {
		return nil, err
	}
	return s, s.reportClosedAccess(ctx)
}

// bind is Open. Without a keyring, only objects without secrets can be used.
func bind(ctx context.Context, client *clientv3.Client, options Options) (*Store, error) {
	if !model.ValidName(options.Cluster) {
		return nil, fmt.Errorf("cluster name %q: letters, digits, '-' and '.' are possible", options.Cluster)
	}
	s := &Store{client: client, groups: &groups{client: client, patience: groupPatience}, prefix: home + options.Cluster + "/", keyring: options.Keyring,
		now: options.Now, oui: options.OUI, collections: map[model.Kind]collection{}}
	if s.now == nil {
		s.now = time.Now
	}
	s.Volumes = newCollection(s, model.KindVolume, s.volumes())
	s.Targets = newCollection(s, model.KindTarget, s.targets())
	s.Hosts = newCollection(s, model.KindHost, s.hosts())
	s.Snapshots = newCollection(s, model.KindSnapshot, s.snapshots())
	s.StoragePools = newCollection(s, model.KindStoragePool, s.storagePools())
	s.Gateways = newCollection(s, model.KindGateway, s.gateways())
	s.GatewayPools = newCollection(s, model.KindGatewayPool, s.gatewayPools())
	s.Fabrics = newCollection(s, model.KindFabric, s.fabrics())
	if err := s.migrate(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newCollection[T model.Object](s *Store, kind model.Kind, n noun[T]) *Collection[T] {
	c := &Collection[T]{store: s, kind: kind, recent: newRecent[T](), noun: n}
	s.collections[kind] = c
	return c
}

func (s *Store) aliveKey(kind model.Kind, name string) string {
	return s.prefix + "alive/" + string(kind) + "/" + name
}

func (s *Store) referencesTo(kind model.Kind, name string) string {
	return s.prefix + "references/" + string(kind) + "/" + name + "/"
}

func (s *Store) referenceKey(to model.Kind, name string, from model.Kind, by string) string {
	return s.referencesTo(to, name) + string(from) + "/" + by
}

func (s *Store) claimKey(c claim) string { return s.prefix + "claims/" + c.what + "/" + c.value }
