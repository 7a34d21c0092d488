package api

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"sluice.dev/sluice/controlplane/internal/model"
)

// overwrite copies the fields of a mask from one message to another. A field that is not set there is cleared. Paths lead
// through messages, not into lists or maps, and only spec and meta.labels can be named.
func overwrite(to, from proto.Message, mask *fieldmaskpb.FieldMask) error {
	var found model.Violations
	for _, path := range mask.GetPaths() {
		if path != "spec" && path != "meta.labels" && !strings.HasPrefix(path, "spec.") {
			found.Addf("updateMask", "%.80q cannot be updated: spec, fields below it, and meta.labels can", path)
			continue
		}
		if !copyField(to.ProtoReflect(), from.ProtoReflect(), strings.Split(path, ".")) {
			found.Addf("updateMask", "%.80q is no field of a %s", path, to.ProtoReflect().Descriptor().Name())
		}
	}
	return found.Err()
}

func copyField(to, from protoreflect.Message, path []string) bool {
	field := to.Descriptor().Fields().ByName(protoreflect.Name(path[0]))
	if field == nil {
		return false
	}
	if len(path) == 1 {
		if from.Has(field) {
			to.Set(field, from.Get(field))
		} else {
			to.Clear(field)
		}
		return true
	}
	if field.Kind() != protoreflect.MessageKind || field.IsList() || field.IsMap() {
		return false
	}
	return copyField(to.Mutable(field).Message(), from.Get(field).Message(), path[1:])
}
