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

// adoptedField is the field of a volume that names the image that it adopts.
const adoptedField = "spec.source.image"

// mayAdopt refuses a volume that adopts an image which its caller may not adopt. The source of a volume is immutable, so only its
// creation is checked. The store refuses images that belong to existing objects.
func (v *Volumes) mayAdopt(ctx context.Context, spec *pb.VolumeSpec) error {
	image := spec.GetSource().GetImage()
	if image == "" {
		return nil
	}
	if v.callers.adoptsAny(ctx) {
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
		return refuse(codes.FailedPrecondition, "image %.255q may not be adopted: administrators may adopt any image, other callers only "+
			"images that StoragePool %s lists in spec.adoptableImages", image, pool.Meta.Name)
	}
	return nil
}

func refuse(code codes.Code, format string, values ...any) error {
	why := fmt.Sprintf(format, values...)
	return withFields(code, errors.New(why), model.Violations{{Field: adoptedField, Description: why}})
}
