package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// home is the prefix of all Sluice systems in an etcd.
	home = "/sluice/"
	// restoredAtATime bounds the volumes that are changed at a time. Their writes share the syncs of etcd's disk.
	restoredAtATime = 64
)

// Numbers are the last numbers that were assigned, by system and sort.
type Numbers map[string]map[string]int64

// Above raises each number to that of others, if that is higher.
func (n Numbers) Above(others Numbers) {
	for system, sorts := range others {
		if n[system] == nil {
			n[system] = map[string]int64{}
		}
		for what, last := range sorts {
			n[system][what] = max(n[system][what], last)
		}
	}
}

// Restored records, in every Sluice system of an etcd, that the etcd was restored from a backup: no number that was assigned and
// lost is assigned again (R13). It must be called before any replica serves, and is idempotent. `earlier` are the numbers from
// which earlier restores continued, as far as known. It returns the number of volumes, and the numbers from which assignment
// continues.
func Restored(ctx context.Context, client *clientv3.Client, now time.Time, earlier Numbers) (int, Numbers, error) {
	clusters, err := clustersIn(ctx, client)
	if err != nil {
		return 0, nil, err
	}
	count, given := 0, Numbers{}
	for _, cluster := range clusters {
		s, err := bind(ctx, client, Options{Cluster: cluster})
		if err != nil {
			return count, nil, err
		}
		volumes, last, err := s.restored(ctx, now, earlier[cluster])
		if count += volumes; err != nil {
			return count, nil, err
		}
		given[cluster] = last
	}
	return count, given, nil
}

// restored records the restore in one system. The mark is stored last: without it, everything is repeated.
func (s *Store) restored(ctx context.Context, now time.Time, earlier map[string]int64) (int, map[string]int64, error) {
	noted, err := s.notedRestore(ctx)
	if err != nil {
		return 0, nil, err
	}
	volumes, err := s.raiseFloors(ctx, now)
	if err != nil {
		return volumes, nil, err
	}
	if err := s.listImagesAnew(ctx); err != nil {
		return volumes, nil, err
	}
	if !noted {
		if err := s.holdPending(ctx, now); err != nil {
			return volumes, nil, err
		}
		err = retry(ctx, func() error {
			var t tx
			if err := s.skipAssigned(ctx, &t, earlier); err != nil {
				return err
			}
			t.put(s.restoredKey(), now.UTC().Format(time.RFC3339))
			_, err := s.commit(ctx, &t)
			return err
		})
		if err != nil {
			return volumes, nil, err
		}
	}
	given := map[string]int64{}
	for _, what := range allNumbers {
		if given[what], _, err = s.lastNumber(ctx, what); err != nil {
			return volumes, nil, err
		}
	}
	return volumes, given, nil
}

// listImagesAnew makes the leader compare images and volumes at once, because the backup does not have what was created and
// deleted since.
func (s *Store) listImagesAnew(ctx context.Context) error {
	return s.StoragePools.amendSealed(ctx, func(t *tx, pool *model.StoragePool) {
		pool.Status.ImagesListed, pool.Status.UnconfirmedImages = time.Time{}, nil
		t.delete(s.jobKey(pool.Meta.UID + model.ListImagesJob))
	})
}

// raiseFloors sets, for each volume, a floor above all epochs and orders that the lost store can have assigned. It lies above the
// revision, because each epoch and order needed a revision. It also lies above the milliseconds since 1970, for an etcd that
// starts again with lower revisions.
func (s *Store) raiseFloors(ctx context.Context, now time.Time) (int, error) {
	volumes, revision, err := s.Volumes.All(ctx)
	if err != nil {
		return 0, err
	}
	floor := uint64(max(revision, now.UnixMilli()))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(restoredAtATime)
	for _, volume := range volumes {
		all.Go(func() error {
			_, err := s.Volumes.modify(ctx, volume.Meta.Name, func(v *model.Volume) (bool, error) {
				v.Status.Ownership = v.Status.Ownership.Restored(floor)
				return true, nil
			})
			return err
		})
	}
	return len(volumes), all.Wait()
}

func (s *Store) restoredKey() string { return s.prefix + "restored" }

// notedRestore reports whether this same restore was recorded before, so that numbers, of which there are few, are skipped once
// only. A mark in the backup belongs to an earlier restore: a restore compacts everything that was stored before it, or later
// writes exist. If that cannot be determined it returns false: to skip more numbers is harmless.
func (s *Store) notedRestore(ctx context.Context) (bool, error) {
	mark, err := s.client.Get(ctx, s.restoredKey())
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	if len(mark.Kvs) == 0 {
		return false, nil
	}
	at := mark.Kvs[0].ModRevision
	if _, err := s.client.Get(ctx, s.restoredKey(), clientv3.WithRev(at)); isCompacted(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	// Volumes may have a later revision: recording the restore a second time changes them.
	for _, what := range allNumbers {
		if _, revision, err := s.lastNumber(ctx, what); err != nil || revision != at {
			return false, err
		}
	}
	return true, nil
}

// clustersIn returns the names of the Sluice systems in an etcd.
func clustersIn(ctx context.Context, client *clientv3.Client) ([]string, error) {
	var all []string
	from, end := home, clientv3.GetPrefixRangeEnd(home)
	for {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) == 0 {
			return all, nil
		}
		name, _, below := strings.Cut(strings.TrimPrefix(string(got.Kvs[0].Key), home), "/")
		if !below {
			return nil, fmt.Errorf("store: %s is no system's", got.Kvs[0].Key)
		}
		all = append(all, name)
		from = clientv3.GetPrefixRangeEnd(home + name + "/")
	}
}
