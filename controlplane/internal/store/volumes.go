package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) volumes() noun[*model.Volume] {
	return noun[*model.Volume]{
		empty: func() *model.Volume { return &model.Volume{} },
		claims: func(v *model.Volume) []claim {
			return []claim{{"naa", v.Status.Identity.NAA, "status.identity.naa"}}
		},
		references: func(v *model.Volume) []reference {
			references := []reference{{model.KindStoragePool, v.Spec.Pool, "spec.pool"}}
			if v.Spec.Source.Snapshot != "" {
				references = append(references, reference{model.KindSnapshot, v.Spec.Source.Snapshot, "spec.source.snapshot"})
			}
			return references
		},
		creating: s.createVolume,
		updating: func(ctx context.Context, _ *tx, from, to *model.Volume) error {
			to.Status = from.Status
			if err := to.ValidateUpdate(from).Err(); err != nil || to.Spec.SizeBytes <= from.Spec.SizeBytes {
				return err
			}
			return s.fitsPool(ctx, to)
		},
		lingers: true,
		copied: func(v *model.Volume) *model.Volume {
			other := *v
			return &other
		},
		removed: func(_ context.Context, t *tx, v *model.Volume) error {
			s.withoutJobs(t, model.KindVolume, &v.Meta)
			t.delete(s.epochKey(v.Meta.UID))
			t.delete(s.reservationKey(v.Meta.UID))
			t.deleteAll(s.observedPrefix() + "volume/" + v.Meta.UID + "/")
			return nil
		},
	}
}

// createVolume assigns the volume's identity and first epoch. The source is checked only here: it may be deleted later.
func (s *Store) createVolume(ctx context.Context, t *tx, v *model.Volume) error {
	if name := v.Spec.Source.Volume; name != "" {
		source, err := s.Volumes.Get(ctx, name)
		if err != nil {
			return asPrecondition(err, "spec.source.volume")
		}
		if err := fits(v, source.Spec.Pool, source.Spec.SizeBytes); err != nil {
			return err
		}
		t.compare(present(s.aliveKey(model.KindVolume, name)), nil)
	}
	if name := v.Spec.Source.Snapshot; name != "" {
		snapshot, err := s.Snapshots.Get(ctx, name)
		if err != nil {
			return asPrecondition(err, "spec.source.snapshot")
		}
		source, err := s.Volumes.Get(ctx, snapshot.Spec.Volume)
		if err != nil {
			return asPrecondition(err, "spec.source.snapshot")
		}
		if err := fits(v, source.Spec.Pool, snapshot.Status.SizeBytes); err != nil {
			return err
		}
	}
	if err := s.suitsPool(ctx, v); err != nil {
		return err
	}
	if err := s.fitsPool(ctx, v); err != nil {
		return err
	}
	if v.Spec.Source.Image != "" {
		if err := s.unowned(ctx, t, v); err != nil {
			return err
		}
	}
	v.Status = model.VolumeStatus{AllocatedBytes: -1, Ownership: model.Ownership{State: model.Unowned}}
	identity, err := model.IdentityFor(v.Meta.UID, s.oui)
	if err != nil {
		return err
	}
	v.Status.Identity = identity
	t.put(s.epochKey(v.Meta.UID), "0")
	return nil
}

// suitsPool refuses settings that only a pool of the other type supports.
func (s *Store) suitsPool(ctx context.Context, v *model.Volume) error {
	if v.Spec.Source.Image == "" && v.Spec.ReclaimPolicy != model.ReclaimTrash {
		return nil
	}
	pool, err := s.StoragePools.Get(ctx, v.Spec.Pool)
	if err != nil {
		return asPrecondition(err, "spec.pool")
	}
	switch {
	case pool.Spec.RBD != nil:
		return nil
	case v.Spec.Source.Image != "":
		return model.Precondition("spec.source.image", "can be adopted in an RBD pool only, and %s is a local one", v.Spec.Pool)
	}
	return model.Precondition("spec.reclaimPolicy", "is Trash, which only an RBD pool has, and %s is a local one", v.Spec.Pool)
}

// fitsPool refuses a size above the largest that the pool can store: a file of its file system, or its largest device. Pools in
// Ceph report no limit, because their images are thin.
func (s *Store) fitsPool(ctx context.Context, v *model.Volume) error {
	pool, err := s.StoragePools.Get(ctx, v.Spec.Pool)
	if err != nil {
		return asPrecondition(err, "spec.pool")
	}
	if most := pool.Status.MaxVolumeBytes; most > 0 && v.Spec.SizeBytes > most {
		return model.Precondition("spec.sizeBytes", "is %d, and pool %s can store volumes of %d bytes at most",
			v.Spec.SizeBytes, v.Spec.Pool, most)
	}
	return nil
}

func fits(v *model.Volume, pool string, size int64) error {
	if v.Spec.Pool != pool {
		return model.Precondition("spec.pool", "is %s, but the source is in %s: a copy stays in its source's pool",
			v.Spec.Pool, pool)
	}
	if v.Spec.SizeBytes < size {
		return model.Precondition("spec.sizeBytes", "is %d, less than the source's %d", v.Spec.SizeBytes, size)
	}
	return nil
}

// Own changes the ownership of a volume by compare-and-swap. change receives the newest ownership. The transaction that stores
// the result fails, and change is called again, if another writer stored one meanwhile (R1). A change of epoch also updates the
// key that reservation commits compare, in the same transaction.
func (term *Term) Own(ctx context.Context, volume string,
	change func(*model.Volume) (model.Ownership, error),
) (*model.Volume, error) {
	return term.own(ctx, nil, func() (*model.Volume, error) { return term.store.Volumes.Get(ctx, volume) }, change)
}

// OwnSeen is Own for a volume that the caller has read. If it is still the newest, nothing is read before the transaction, which
// shortens a failover of many volumes. Otherwise change receives the newest one next. seen is not modified.
//
// A change that depends on records of clients, of the gateway to fence or of the next owner, passes them as records. It is stored
// only if these have not changed, else ErrBusy.
func (term *Term) OwnSeen(ctx context.Context, seen *model.Volume, records []*model.RadosClients,
	change func(*model.Volume) (model.Ownership, error),
) (*model.Volume, error) {
	name, tried := seen.Meta.Name, false
	return term.own(ctx, records, func() (*model.Volume, error) {
		if tried {
			return term.store.Volumes.Get(ctx, name)
		}
		tried = true
		volume := *seen
		volume.Status.Conditions = slices.Clone(seen.Status.Conditions)
		return &volume, nil
	}, change)
}

func (term *Term) own(ctx context.Context, records []*model.RadosClients, newest func() (*model.Volume, error),
	change func(*model.Volume) (model.Ownership, error),
) (*model.Volume, error) {
	s := term.store
	var epoch *uint64
	var uid string
	step := func(v *model.Volume) (bool, error) {
		next, err := change(v)
		if err != nil || next == v.Status.Ownership {
			return false, err
		}
		epoch, uid = nil, v.Meta.UID
		if next.Epoch != v.Status.Ownership.Epoch {
			epoch = &next.Epoch
		}
		v.Status.Ownership = v.Status.Ownership.Ordered(next, s.now().UTC())
		return true, nil
	}
	return s.Volumes.modifyNewest(ctx, newest, step, func(t *tx) error {
		term.guard(t)
		t.grouped = true
		for _, record := range records {
			t.compare(s.radosClientsAt(record), func(ctx context.Context) error {
				got, err := s.client.Get(ctx, s.radosClientKey(record.PoolUID, record.Gateway))
				if err == nil && (len(got.Kvs) == 0 || got.Kvs[0].ModRevision != record.Version) {
					return ErrBusy
				}
				return err
			})
		}
		if epoch != nil {
			t.put(s.epochKey(uid), strconv.FormatUint(*epoch, 10))
		}
		return nil
	})
}

// RequestMove records that a volume is to move to a gateway, or to any other gateway if the name is empty. The leader carries it
// out. A dry run stores nothing. Errors: PreconditionError if that gateway cannot be the owner.
func (s *Store) RequestMove(ctx context.Context, volume, gateway string, dryRun bool) (*model.Volume, error) {
	var number uint32
	if gateway != "" {
		to, err := s.Gateways.Get(ctx, gateway)
		if err != nil {
			return nil, asPrecondition(err, "gateway")
		}
		if to.Spec.Cordoned || to.Status.Drain || to.Meta.Deleting() {
			return nil, model.Precondition("gateway", "%s is cordoned or drained: `sluicectl gateway undrain %s`", gateway, gateway)
		}
		exporter, err := s.TargetOf(ctx, volume)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(exporter.Status.PathSet, to.Status.Number) {
			return nil, model.Precondition("gateway", "%s is not in the path set of target %s", gateway, exporter.Meta.Name)
		}
		number = to.Status.Number
	}
	return s.Volumes.modify(ctx, volume, func(v *model.Volume) (bool, error) {
		if v.Status.Ownership.State == model.Unowned {
			return false, model.Precondition("name", "%s has no owner: no target exports it", volume)
		}
		now := s.now().UTC()
		v.Status.MoveRequest, v.Status.Refusal = &model.MoveRequest{Gateway: number, Since: now}, nil
		underWay(v, model.ReasonMoveRequested, now)
		return !dryRun, nil
	})
}

// underWay marks a request as in progress, so that a client that waits for it does not mistake an older refusal for the answer.
func underWay(v *model.Volume, reason string, now time.Time) {
	condition := model.Condition{Type: model.ConditionProgressing, Status: model.ConditionTrue, Reason: reason}
	for _, c := range v.Status.Conditions {
		if c.Type == condition.Type {
			condition.ObservedGeneration = c.ObservedGeneration
			model.SetCondition(&v.Status.Conditions, condition, now)
		}
	}
}

// TargetOf returns the target that maps a volume. Errors: PreconditionError if no target does.
func (s *Store) TargetOf(ctx context.Context, volume string) (*model.Target, error) {
	got, err := s.client.Get(ctx, s.claimKey(claim{what: "mapping", value: volume}))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return nil, model.Precondition("volume", "no target maps volume %s", volume)
	}
	return s.Targets.Get(ctx, strings.TrimPrefix(string(got.Kvs[0].Value), string(model.KindTarget)+" "))
}

func (s *Store) epochKey(uid string) string { return s.prefix + "epochs/" + uid }

func atEpoch(key string, epoch uint64) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(key), "=", strconv.FormatUint(epoch, 10))
}

// asPrecondition converts the absence of an object that a field names into a PreconditionError on that field.
func asPrecondition(err error, field string) error {
	if missing, ok := err.(*NotFoundError); ok {
		return model.Precondition(field, "there is no %s named %q", missing.Kind, missing.Name)
	}
	return err
}
