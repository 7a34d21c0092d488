package server

import (
	"regexp"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxDepth of the messages in a request.
const maxDepth = 6

// badValues returns values of a field that a rule may refuse.
func badValues(field protoreflect.FieldDescriptor) []protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return []protoreflect.Value{protoreflect.ValueOfString(""), protoreflect.ValueOfString("!!_"), protoreflect.ValueOfString(strings.Repeat("x", 1<<17))}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt32(-7), protoreflect.ValueOfInt32(7), protoreflect.ValueOfInt32(1<<31 - 1)}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt64(-7), protoreflect.ValueOfInt64(7), protoreflect.ValueOfInt64(1<<63 - 1)}
	case protoreflect.EnumKind:
		return []protoreflect.Value{protoreflect.ValueOfEnum(0), protoreflect.ValueOfEnum(99)}
	case protoreflect.BytesKind:
		return []protoreflect.Value{protoreflect.ValueOfBytes(nil), protoreflect.ValueOfBytes(make([]byte, 1<<17))}
	}
	return nil
}

// requests calls with requests in which one field has a bad value. inner and the outer message are the same object, or parts of one.
func requests(outer proto.Message, inner protoreflect.Message, depth int, call func(proto.Message)) {
	call(outer)
	if depth == maxDepth {
		return
	}
	fields := inner.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap():
			entries := inner.Mutable(field).Map()
			if field.MapValue().Kind() == protoreflect.StringKind {
				entries.Set(protoreflect.ValueOfString("a_b").MapKey(), protoreflect.ValueOfString(strings.Repeat("x", 1<<17)))
			}
			call(outer)
		case field.IsList() && field.Message() != nil:
			requests(outer, inner.Mutable(field).List().AppendMutable().Message(), depth+1, call)
		case field.IsList():
			for _, value := range badValues(field) {
				list := inner.Mutable(field).List()
				for range 2000 {
					list.Append(value)
				}
				call(outer)
				inner.Clear(field)
			}
		case field.Message() != nil:
			requests(outer, inner.Mutable(field).Message(), depth+1, call)
		default:
			for _, value := range badValues(field) {
				inner.Set(field, value)
				call(outer)
			}
		}
		inner.Clear(field)
	}
}

var (
	snake      = regexp.MustCompile(`[a-z]_[a-z]`)
	keyed      = regexp.MustCompile(`\[[^]]*\]`)
	expression = regexp.MustCompile(`\[[a-z0-9^]+-|\\|\^|\(\?|\.\*|regex`)
	unitless   = regexp.MustCompile(`\d\d\d+( |$|,)(?:[^kKMGTPEb]|$)`)
)

// The fields of every request to the public API get bad values, and every refusal is in the words of a user.
func TestEveryRefusedFieldIsNamedAsInYAMLWithUnitsAndWithoutRegularExpressions(t *testing.T) {
	validator, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{validator: validator}
	seen := map[string]bool{}
	check := func(request proto.Message) {
		err := g.valid(request)
		if err == nil {
			return
		}
		for _, detail := range status.Convert(err).Details() {
			for _, violation := range detail.(*errdetails.BadRequest).GetFieldViolations() {
				field, said := violation.GetField(), violation.GetDescription()
				line := keyed.ReplaceAllString(field, "[]") + ": " + said
				if seen[line] {
					continue
				}
				seen[line] = true
				if field == "" || snake.MatchString(keyed.ReplaceAllString(field, "")) {
					t.Errorf("%s: this is not the name of the field in YAML (%s)", field, said)
				}
				if said == "" || expression.MatchString(said) || snake.MatchString(said) {
					t.Errorf("%s: %q is not in words", field, said)
				}
				if strings.HasSuffix(field, "Bytes") && unitless.MatchString(said) {
					t.Errorf("%s: %q has a size without a unit", field, said)
				}
			}
		}
	}
	services := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("sluice.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			if service.FullName() == protoreflect.FullName(pb.GatewayStreamService_ServiceDesc.ServiceName) {
				continue // gateways use it, not people
			}
			services++
			for j := range service.Methods().Len() {
				message := dynamicpb.NewMessage(service.Methods().Get(j).Input())
				requests(message, message, 0, check)
			}
		}
		return true
	})
	for _, wanted := range []string{"spec.sizeBytes: must be greater than or equal to 1 MiB and less than or equal to 64 TiB",
		"meta.name: must consist of lower-case letters", "spec.local.devices[]: must be the path of a device below /dev"} {
		found := false
		for line := range seen {
			found = found || strings.HasPrefix(line, wanted)
		}
		if !found {
			t.Errorf("no refusal is %q", wanted)
		}
	}
	if services < 9 || len(seen) < 100 {
		t.Errorf("only %d services with %d refusals were found", services, len(seen))
	}
}
