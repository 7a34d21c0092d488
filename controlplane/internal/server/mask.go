package server

import (
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// relevantViolations returns the relevant violations. An update with a mask uses only the fields of the spec that the mask names,
// so the others may be missing. The stored values of those were valid when they were stored, and the model validates the whole
// object again.
func relevantViolations(request proto.Message, violations []*protovalidate.Violation) []*protovalidate.Violation {
	masked, ok := request.(interface{ GetUpdateMask() *fieldmaskpb.FieldMask })
	if !ok || len(masked.GetUpdateMask().GetPaths()) == 0 {
		return violations
	}
	return slices.DeleteFunc(slices.Clone(violations), func(violation *protovalidate.Violation) bool {
		var names []string
		for _, element := range violation.Proto.GetField().GetElements() {
			names = append(names, element.GetFieldName())
		}
		if len(names) < 2 || names[1] != "spec" {
			return false
		}
		at := strings.Join(names[1:], ".") + "." // names[0] is the object
		return !slices.ContainsFunc(masked.GetUpdateMask().GetPaths(), func(path string) bool {
			return strings.HasPrefix(at, path+".") || strings.HasPrefix(path+".", at)
		})
	})
}
