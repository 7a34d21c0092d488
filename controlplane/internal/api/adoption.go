package api

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// adoptedField is where a volume names the image that it adopts.
const adoptedField = "spec.source.image"

// mayAdopt refuses a volume that is to adopt an image which belongs to an existing object, or which its caller may not adopt. The
// source of a volume is immutable, so that its creation is the only call to check.
func (v *Volumes) mayAdopt(ctx context.Context, spec *pb.VolumeSpec) error {
	image := spec.GetSource().GetImage()
	if image == "" {
		return nil
	}
	if err := v.unowned(ctx, spec.GetPool(), image); err != nil {
		return err
	}
	if v.adoptsAny(ctx) {
		return nil
	}
	pool, err := v.store.StoragePools.Get(ctx, spec.GetPool())
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		return nil // the creation of the volume reports it
	}
	if err != nil {
		return statusOf(err)
	}
	if !pool.Adoptable(image) {
		return refuse(codes.FailedPrecondition, "image %.255q may not be adopted: administrators may adopt any image, other callers those "+
			"that StoragePool %s lists in spec.adoptableImages", image, pool.Meta.Name)
	}
	return nil
}

// unowned refuses an image of an existing volume or snapshot, also of one in deletion, and an image that another volume adopts.
func (v *Volumes) unowned(ctx context.Context, pool, image string) error {
	owner := model.ImageOwner(image)
	for token := ""; ; {
		page, err := v.store.Volumes.List(ctx, store.ListOptions{PageSize: store.MaxPageSize, PageToken: token})
		if err != nil {
			return statusOf(err)
		}
		for _, volume := range page.Objects {
			if owner != "" && volume.Meta.UID == owner {
				return refuse(codes.FailedPrecondition, "image %.255q is that of Volume %s", image, volume.Meta.Name)
			}
			if volume.Spec.Pool == pool && volume.Spec.Source.Image == image && volume.Status.CapacityBytes == 0 {
				return refuse(codes.FailedPrecondition, "Volume %s adopts image %.255q already", volume.Meta.Name, image)
			}
		}
		if token = page.Next; token == "" {
			break
		}
	}
	for token := ""; owner != ""; {
		page, err := v.store.Snapshots.List(ctx, store.ListOptions{PageSize: store.MaxPageSize, PageToken: token})
		if err != nil {
			return statusOf(err)
		}
		for _, snapshot := range page.Objects {
			if snapshot.Meta.UID == owner {
				return refuse(codes.FailedPrecondition, "image %.255q is that of Snapshot %s", image, snapshot.Meta.Name)
			}
		}
		if token = page.Next; token == "" {
			break
		}
	}
	return nil
}

func refuse(code codes.Code, format string, values ...any) error {
	why := fmt.Sprintf(format, values...)
	return withFields(code, errors.New(why), model.Violations{{Field: adoptedField, Description: why}})
}
