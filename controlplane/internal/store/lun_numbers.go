package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// LUN numbers are quarantined with their target, and after its deletion: hosts know a device by the target's IQN and its LUN
// number. A new target with that IQN must not show them another volume under it.

func (s *Store) lunNumbersKey(iqn string) string { return s.prefix + "lun-numbers/" + iqn }

// keepNumbers keeps the LUN numbers of a removed target in quarantine, until the quarantine ends.
func (s *Store) keepNumbers(ctx context.Context, t *tx, target *model.Target) error {
	none := &model.Target{}
	uids, err := s.volumeUIDs(ctx, t, none.Renumbered(target))
	if err != nil {
		return err
	}
	none.Quarantine(target, uids, s.now().UTC())
	if len(none.Status.Quarantine) == 0 {
		return nil
	}
	value, err := json.Marshal(none.Status.Quarantine)
	if err != nil {
		return err
	}
	// If the transaction fails the lease remains, and expires by itself.
	lease, err := s.client.Grant(ctx, int64(model.LunQuarantine/time.Second))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	t.writes = append(t.writes, clientv3.OpPut(s.lunNumbersKey(target.Spec.IQN), string(value), clientv3.WithLease(lease.ID)))
	return nil
}

// takeOverNumbers gives a new target the quarantine that a removed target of its IQN has left. Errors: InvalidError.
func (s *Store) takeOverNumbers(ctx context.Context, t *tx, target *model.Target) error {
	key := s.lunNumbersKey(target.Spec.IQN)
	got, err := s.client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		t.compare(missing(key), nil)
		return nil
	}
	var left model.Target
	if err := json.Unmarshal(got.Kvs[0].Value, &left.Status.Quarantine); err != nil {
		return fmt.Errorf("%s in the store: %w", key, err)
	}
	uids, err := s.volumeUIDs(ctx, t, target.Renumbered(&left))
	if err != nil {
		return err
	}
	now := s.now().UTC()
	if err := target.ValidateNumbers(left.Status.Quarantine, uids, now).Err(); err != nil {
		return err
	}
	target.Quarantine(&left, uids, now)
	t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", got.Kvs[0].ModRevision), nil)
	t.delete(key)
	return nil
}

// volumeUIDs returns the uids of volumes by name, and compares them in the transaction: by then another volume may have the name.
// A volume that does not exist has no entry; the check of references reports it.
func (s *Store) volumeUIDs(ctx context.Context, t *tx, names []string) (model.VolumeUIDs, error) {
	uids := model.VolumeUIDs{}
	for batch := range slices.Chunk(names, observedBatch) {
		var reads []clientv3.Op
		for _, name := range batch {
			reads = append(reads, clientv3.OpGet(s.aliveKey(model.KindVolume, name)))
		}
		got, err := s.client.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		for i, name := range batch {
			if found := got.Responses[i].GetResponseRange().Kvs; len(found) > 0 {
				uids[name] = string(found[0].Value)
				t.compare(clientv3.Compare(clientv3.ModRevision(string(found[0].Key)), "=", found[0].ModRevision), nil)
			}
		}
	}
	return uids, nil
}
