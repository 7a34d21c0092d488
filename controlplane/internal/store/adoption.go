package store

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// unowned refuses to adopt an image of an existing volume or snapshot, even if that is being deleted, and an image that another
// volume adopts. Comparisons in the transaction that stores the volume ensure that no volume or snapshot was created after the
// lists were read.
func (s *Store) unowned(ctx context.Context, t *tx, v *model.Volume) error {
	image, owner := v.Spec.Source.Image, model.ImageOwner(v.Spec.Source.Image)
	volumes, asOf, err := s.Volumes.All(ctx)
	if err != nil {
		return err
	}
	t.compare(createdUntil(s.Volumes.prefix(), asOf), nil)
	for _, other := range volumes {
		switch {
		case owner != "" && other.Meta.UID == owner:
			return model.Precondition("spec.source.image", "image %.255q is that of Volume %s", image, other.Meta.Name)
		case other.Spec.Pool == v.Spec.Pool && other.Spec.Source.Image == image && other.Status.CapacityBytes == 0:
			return model.Precondition("spec.source.image", "Volume %s adopts image %.255q already", other.Meta.Name, image)
		}
	}
	if owner == "" {
		return nil
	}
	snapshots, asOf, err := s.Snapshots.All(ctx)
	if err != nil {
		return err
	}
	t.compare(createdUntil(s.Snapshots.prefix(), asOf), nil)
	for _, snapshot := range snapshots {
		if snapshot.Meta.UID == owner {
			return model.Precondition("spec.source.image", "image %.255q is that of Snapshot %s", image, snapshot.Meta.Name)
		}
	}
	return nil
}

// createdUntil compares that no key below a prefix was created after a revision.
func createdUntil(prefix string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix), "<", revision+1).WithPrefix()
}
