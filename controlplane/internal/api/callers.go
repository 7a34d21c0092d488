package api

import (
	"context"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Callers determines what the caller of a method may do, beyond calling the method. A nil function means no.
type Callers struct {
	// AdoptsAny: the caller may adopt images that no StoragePool lists.
	AdoptsAny func(context.Context) bool
	// ChangesItsOwnOnly: the caller is the CSI driver. It may create, change and delete only objects with its label, and change
	// few fields of others.
	ChangesItsOwnOnly func(context.Context) bool
}

func (c Callers) adoptsAny(ctx context.Context) bool { return c.AdoptsAny != nil && c.AdoptsAny(ctx) }

func (c Callers) limited(ctx context.Context) bool {
	return c.ChangesItsOwnOnly != nil && c.ChangesItsOwnOnly(ctx)
}

// The CSI driver sets this label on each object that it creates.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	csiDriver      = "csi.sluice.dev"
	// labelResourceUID is the operator's label: the uid of the resource for which it maintains the object.
	labelResourceUID = "sluice.dev/uid"
)

func isDrivers(meta *model.Meta) bool { return meta.Labels[labelManagedBy] == csiDriver }

// driversLabel reports whether the prefix of the label is the domain of the CSI driver, or one below it.
func driversLabel(label string) bool {
	prefix, _, _ := strings.Cut(label, "/")
	return prefix == csiDriver || strings.HasSuffix(prefix, "."+csiDriver)
}

// foreign refuses a change of an object that the CSI driver did not create.
func foreign(meta *model.Meta, change string) error {
	return status.Errorf(codes.PermissionDenied, "the CSI driver may not %s %s: the label %s=%s is missing, so the driver did not create it",
		change, meta.Name, labelManagedBy, csiDriver)
}

// mayCreate refuses a new object of the CSI driver without the driver's label, or with the operator's.
func mayCreate(meta *model.Meta) error {
	if !isDrivers(meta) {
		return foreign(meta, "create")
	}
	if _, marked := meta.Labels[labelResourceUID]; marked {
		return status.Errorf(codes.PermissionDenied, "the CSI driver may not set the label %s: it is the operator's", labelResourceUID)
	}
	return nil
}

// mayUpdate refuses two kinds of changes by the CSI driver: a change of a label that marks an object, and a change of a foreign
// object beyond the fields in `shared`. `shared` has the fields, by their names in the API, that the driver may change in every
// object.
func mayUpdate(from, to *model.Meta, before, after proto.Message, shared []string) error {
	if isDrivers(from) {
		if from.Labels[labelResourceUID] != to.Labels[labelResourceUID] {
			return status.Errorf(codes.PermissionDenied, "the CSI driver may not change the label %s: it is the operator's", labelResourceUID)
		}
		if !isDrivers(to) {
			return status.Errorf(codes.PermissionDenied, "the CSI driver may not remove the label %s=%s of %s", labelManagedBy, csiDriver, to.Name)
		}
		return nil
	}
	if len(shared) == 0 {
		return foreign(from, "change")
	}
	others := func(labels map[string]string) map[string]string {
		rest := maps.Clone(labels)
		maps.DeleteFunc(rest, func(label, _ string) bool { return driversLabel(label) })
		return rest
	}
	if !maps.Equal(others(from.Labels), others(to.Labels)) {
		return foreign(from, "change labels of other domains of")
	}
	expected := proto.Clone(before)
	for _, field := range shared {
		copyField(expected.ProtoReflect(), after.ProtoReflect(), strings.Split(field, "."))
	}
	field := expected.ProtoReflect().Descriptor().Fields().ByName("spec")
	if !expected.ProtoReflect().Get(field).Equal(after.ProtoReflect().Get(field)) {
		return foreign(from, "change other fields than "+strings.Join(shared, ", ")+" of")
	}
	return nil
}

// mayDelete refuses to delete an object that the CSI driver did not create.
func mayDelete(meta *model.Meta) error {
	if !isDrivers(meta) {
		return foreign(meta, "delete")
	}
	return nil
}
