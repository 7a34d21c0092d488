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

// holders are the operations on held operations of one kind, of objects of any type.
type holders interface {
	kind() model.Kind
	hold(ctx context.Context, now time.Time, names model.GatewayNames) error
	list(ctx context.Context) ([]HeldObject, error)
	confirm(ctx context.Context, name string) error
	discard(ctx context.Context, name string) error
}

// holders has the kinds whose objects can have held operations.
func (s *Store) holders() []holders {
	return []holders{holdersIn[*model.Volume]{s.Volumes}, holdersIn[*model.Snapshot]{s.Snapshots}}
}

func (s *Store) holdersOf(kind model.Kind, name string) (holders, error) {
	for _, h := range s.holders() {
		if h.kind() == kind {
			return h, nil
		}
	}
	return nil, &NotFoundError{kind, name}
}

// holdPending holds the pending operations of all objects, and deletes the jobs that the backup had for them. Gateways would carry out
// these jobs.
func (s *Store) holdPending(ctx context.Context, now time.Time) error {
	gateways, _, err := s.Gateways.All(ctx)
	if err != nil {
		return err
	}
	names := model.GatewayNames{}
	for _, gateway := range gateways {
		names[gateway.Status.Number] = gateway.Meta.Name
	}
	for _, h := range s.holders() {
		if err := h.hold(ctx, now.UTC(), names); err != nil {
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

// Held lists the objects with held operations, in the order of kind and name.
func (s *Store) Held(ctx context.Context) ([]HeldObject, error) {
	var all []HeldObject
	for _, h := range s.holders() {
		held, err := h.list(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	slices.SortFunc(all, func(a, b HeldObject) int {
		return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name)
	})
	return all, nil
}

// ConfirmHeld permits the held operations of an object. Errors: NotFoundError; PreconditionError if none are held.
func (s *Store) ConfirmHeld(ctx context.Context, kind model.Kind, name string) error {
	h, err := s.holdersOf(kind, name)
	if err != nil {
		return err
	}
	return h.confirm(ctx, name)
}

// DiscardHeld forgets the held operations of an object. Errors: NotFoundError; PreconditionError as of model.Holder.
func (s *Store) DiscardHeld(ctx context.Context, kind model.Kind, name string) error {
	h, err := s.holdersOf(kind, name)
	if err != nil {
		return err
	}
	return h.discard(ctx, name)
}

// holdersIn is the holders of one kind.
type holdersIn[T model.Holder] struct{ objects *Collection[T] }

func (h holdersIn[T]) kind() model.Kind { return h.objects.kind }

func (h holdersIn[T]) hold(ctx context.Context, now time.Time, names model.GatewayNames) error {
	all, _, err := h.objects.All(ctx)
	if err != nil {
		return err
	}
	for _, object := range all {
		if len(object.Pending(names)) == 0 {
			continue
		}
		if err := h.objects.store.dropJobs(ctx, object.Metadata().UID); err != nil {
			return err
		}
		hold := func(o T) (bool, error) { return o.Hold(now, names), nil }
		if _, err := h.objects.modify(ctx, object.Metadata().Name, hold); err != nil {
			return err
		}
	}
	return nil
}

func (h holdersIn[T]) list(ctx context.Context) ([]HeldObject, error) {
	all, _, err := h.objects.All(ctx)
	var found []HeldObject
	for _, object := range all {
		if held := *object.Held(); len(held) > 0 {
			found = append(found, HeldObject{h.kind(), object.Metadata().Name, held})
		}
	}
	return found, err
}

func (h holdersIn[T]) confirm(ctx context.Context, name string) error {
	_, err := h.objects.modify(ctx, name, func(object T) (bool, error) {
		held := object.Held()
		if len(*held) == 0 {
			return false, model.NothingHeld()
		}
		*held = nil
		return true, nil
	})
	return err
}

func (h holdersIn[T]) discard(ctx context.Context, name string) error {
	var undeleted bool
	var uid string
	_, err := h.objects.modify(ctx, name, func(object T) (_ bool, err error) {
		undeleted, err = object.Discard()
		uid = object.Metadata().UID
		return true, err
	}, func(t *tx) error {
		if undeleted { // others may refer to it again
			t.put(h.objects.store.aliveKey(h.kind(), name), uid)
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
