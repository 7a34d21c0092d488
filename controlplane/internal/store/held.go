package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// HeldObject has operations that were pending in the backup from which the store was restored. They are not carried out before
// ConfirmHeld.
type HeldObject struct {
	Kind model.Kind
	Name string
	// Operations in plain words, as in `deletion (reclaim policy Delete)`.
	Operations []string
}

// holdPending holds the pending operations of all volumes and snapshots. It deletes the jobs of the backup, because gateways
// would carry them out again.
func (s *Store) holdPending(ctx context.Context, now time.Time) error {
	volumes, _, err := s.Volumes.All(ctx)
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if len(volume.Pending()) == 0 {
			continue
		}
		if err := s.dropJobs(ctx, volume.Meta.UID); err != nil {
			return err
		}
		hold := func(v *model.Volume) (bool, error) { return v.Hold(now.UTC()), nil }
		if _, err := s.Volumes.modify(ctx, volume.Meta.Name, hold); err != nil {
			return err
		}
	}
	snapshots, _, err := s.Snapshots.All(ctx)
	if err != nil {
		return err
	}
	for _, snapshot := range snapshots {
		if len(snapshot.Pending()) == 0 {
			continue
		}
		if err := s.dropJobs(ctx, snapshot.Meta.UID); err != nil {
			return err
		}
		hold := func(o *model.Snapshot) (bool, error) { return o.Hold(), nil }
		if _, err := s.Snapshots.modify(ctx, snapshot.Meta.Name, hold); err != nil {
			return err
		}
	}
	return nil
}

// dropJobs deletes all jobs of an object.
func (s *Store) dropJobs(ctx context.Context, uid string) error {
	if _, err := s.client.Delete(ctx, s.jobPrefix()+uid+".", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Held lists the objects with held operations, in order of kind and name.
func (s *Store) Held(ctx context.Context) ([]HeldObject, error) {
	var all []HeldObject
	volumes, _, err := s.Volumes.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		if len(v.Status.Held) > 0 {
			all = append(all, HeldObject{model.KindVolume, v.Meta.Name, v.Status.Held})
		}
	}
	snapshots, _, err := s.Snapshots.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range snapshots {
		if len(o.Status.Held) > 0 {
			all = append(all, HeldObject{model.KindSnapshot, o.Meta.Name, o.Status.Held})
		}
	}
	slices.SortFunc(all, func(a, b HeldObject) int {
		return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name)
	})
	return all, nil
}

// ConfirmHeld releases the held operations of an object, so that they are carried out. Errors: NotFoundError; PreconditionError
// if none are held.
func (s *Store) ConfirmHeld(ctx context.Context, kind model.Kind, name string) error {
	release := func(held *[]string) (bool, error) {
		if len(*held) == 0 {
			return false, model.NothingHeld()
		}
		*held = nil
		return true, nil
	}
	var err error
	switch kind {
	case model.KindVolume:
		_, err = s.Volumes.modify(ctx, name, func(v *model.Volume) (bool, error) { return release(&v.Status.Held) })
	case model.KindSnapshot:
		_, err = s.Snapshots.modify(ctx, name, func(o *model.Snapshot) (bool, error) { return release(&o.Status.Held) })
	default:
		return &NotFoundError{kind, name}
	}
	return err
}

// DiscardHeld drops the held operations of an object. Errors: NotFoundError; PreconditionError as in model.Volume.Discard.
func (s *Store) DiscardHeld(ctx context.Context, kind model.Kind, name string) error {
	var err error
	switch kind {
	case model.KindVolume:
		err = discard(ctx, s.Volumes, name, (*model.Volume).Discard)
	case model.KindSnapshot:
		err = discard(ctx, s.Snapshots, name, (*model.Snapshot).Discard)
	default:
		return &NotFoundError{kind, name}
	}
	return err
}

func discard[T model.Object](ctx context.Context, objects *Collection[T], name string, discarded func(T) (bool, error)) error {
	var undeleted bool
	var uid string
	_, err := objects.modify(ctx, name, func(object T) (_ bool, err error) {
		undeleted, err = discarded(object)
		uid = object.Metadata().UID
		return true, err
	}, func(t *tx) error {
		if undeleted { // other objects may refer to it again
			t.put(objects.store.aliveKey(objects.kind, name), uid)
		}
		return nil
	})
	return err
}

// HeldIn lists the held operations of every system of a restored etcd, by system.
func HeldIn(ctx context.Context, client *clientv3.Client) (map[string][]HeldObject, error) {
	clusters, err := clustersIn(ctx, client)
	if err != nil {
		return nil, err
	}
	all := map[string][]HeldObject{}
	for _, cluster := range clusters {
		s, err := bind(ctx, client, Options{Cluster: cluster})
		if err != nil {
			return nil, err
		}
		if all[cluster], err = s.Held(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}
