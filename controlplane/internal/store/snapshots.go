package store

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) snapshots() noun[*model.Snapshot] {
	return noun[*model.Snapshot]{
		empty: func() *model.Snapshot { return &model.Snapshot{} },
		references: func(x *model.Snapshot) []reference {
			return []reference{{model.KindVolume, x.Spec.Volume, "spec.volume"}}
		},
		creating: func(_ context.Context, _ *tx, x *model.Snapshot) error {
			x.Status = model.SnapshotStatus{}
			return nil
		},
		updating: func(_ context.Context, _ *tx, from, to *model.Snapshot) error {
			to.Status = from.Status
			return to.ValidateUpdate(from).Err()
		},
		lingers: true,
		removed: func(_ context.Context, t *tx, x *model.Snapshot) error {
			s.withoutJobs(t, model.KindSnapshot, &x.Meta)
			return nil
		},
	}
}

// RequestRollBack requests that a snapshot's volume is rolled back to it. The volume is assigned to no gateway before that is
// done. Errors: PreconditionError while a target maps the volume, or a gateway still has it.
func (s *Store) RequestRollBack(ctx context.Context, name string, dryRun bool) (*model.Snapshot, error) {
	snapshot, err := s.Snapshots.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if !snapshot.Status.Ready || snapshot.Meta.Deleting() {
		return nil, model.Precondition("name", "snapshot %s is not ready, or is being deleted", name)
	}
	mapping := s.claimKey(claim{what: "mapping", value: snapshot.Spec.Volume})
	exported := func(ctx context.Context) error {
		got, err := s.client.Get(ctx, mapping)
		if err != nil || len(got.Kvs) == 0 {
			return err
		}
		return model.Precondition("name", "volume %s is mapped by %s: its data would change under its hosts; take it from "+
			"there first", snapshot.Spec.Volume, got.Kvs[0].Value)
	}
	if err := exported(ctx); err != nil {
		return nil, err
	}
	request := model.RollBackRequest{Snapshot: snapshot.Meta.UID, Since: s.now().UTC()}
	_, err = s.Volumes.modify(ctx, snapshot.Spec.Volume, func(v *model.Volume) (bool, error) {
		if v.Status.Ownership.State != model.Unowned {
			return false, model.Precondition("name", "volume %s is still held by a gateway (%s): try again when it is not",
				v.Meta.Name, v.Status.Ownership.State)
		}
		if r := v.Status.RollBack; r != nil && r.Snapshot != request.Snapshot {
			return false, model.Precondition("name", "volume %s is being rolled back to another snapshot", v.Meta.Name)
		} else if r != nil || dryRun {
			return false, nil
		}
		v.Status.RollBack, v.Status.Refusal = &request, nil
		underWay(v, model.ReasonRollBackRequested, request.Since)
		return true, nil
	}, func(t *tx) error {
		t.compare(missing(mapping), exported)
		t.compare(present(s.aliveKey(model.KindSnapshot, name)), nil)
		return nil
	})
	return snapshot, err
}
