package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// managed returns the methods of the management API by the names of their requests: those of all services except the stream of
// gateways, and the service of the join listener.
func managed() map[protoreflect.FullName]protoreflect.MethodDescriptor {
	all := map[protoreflect.FullName]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("sluice.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				if method := service.Methods().Get(j); service.Name() != "GatewayStreamService" && service.Name() != "JoinService" {
					all[method.Input().FullName()] = method
				}
			}
		}
		return true
	})
	return all
}

// has reports whether a field has a behavior (google.api.field_behavior).
func has(field protoreflect.FieldDescriptor, behavior annotations.FieldBehavior) bool {
	return slices.Contains(behaviors(field), behavior)
}

func behaviors(field protoreflect.FieldDescriptor) []annotations.FieldBehavior {
	found, _ := proto.GetExtension(field.Options(), annotations.E_FieldBehavior).([]annotations.FieldBehavior)
	return found
}

func required(field protoreflect.FieldDescriptor) bool {
	return has(field, annotations.FieldBehavior_REQUIRED) || has(field, annotations.FieldBehavior_IDENTIFIER)
}

// requestFields returns the fields of all requests and of messages in them, except fields below an OUTPUT_ONLY field, which no
// caller sends.
func requestFields() map[protoreflect.FullName]protoreflect.FieldDescriptor {
	all := map[protoreflect.FullName]protoreflect.FieldDescriptor{}
	var add func(protoreflect.MessageDescriptor)
	add = func(message protoreflect.MessageDescriptor) {
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			if _, known := all[field.FullName()]; known {
				continue
			}
			all[field.FullName()] = field
			inside := field.Message()
			if inside != nil && !field.IsMap() && inside.ParentFile().Package() == "sluice.v1" &&
				!has(field, annotations.FieldBehavior_OUTPUT_ONLY) {
				add(inside)
			}
		}
	}
	for _, method := range managed() {
		add(method.Input())
	}
	return all
}

func TestEachFieldOfARequestHasABehavior(t *testing.T) {
	for name, field := range requestFields() {
		if len(behaviors(field)) == 0 {
			t.Errorf("%s: a caller can send it, and it has no google.api.field_behavior", name)
		}
	}
}

// step leads from a message to one of its fields, or to an element of a list.
type step struct {
	field protoreflect.FieldDescriptor
	index int
}

// place leads from a request to a field of it.
type place []step

// String formats a place as errors do, for example gateway.spec.portals[0].listen.
func (p place) String() string {
	names := make([]string, len(p))
	for i, s := range p {
		names[i] = string(s.field.Name())
		if s.field.IsList() && i < len(p)-1 {
			names[i] = fmt.Sprintf("%s[%d]", names[i], s.index)
		}
	}
	return strings.Join(names, ".")
}

func (p place) to(field protoreflect.FieldDescriptor, index int) place {
	return append(slices.Clone(p), step{field, index})
}

// without returns a copy of a request in which a field is not set.
func without(request proto.Message, at place) proto.Message {
	changed := proto.Clone(request)
	message := changed.ProtoReflect()
	for _, s := range at[:len(at)-1] {
		if s.field.IsList() {
			message = message.Mutable(s.field).List().Get(s.index).Message()
		} else {
			message = message.Mutable(s.field).Message()
		}
	}
	message.Clear(at[len(at)-1].field)
	return changed
}

// visit calls see for each field of a request, set or not, and of the messages in it that a caller sends.
func visit(message protoreflect.Message, at place, see func(protoreflect.Message, place)) {
	for i := range message.Descriptor().Fields().Len() {
		field := message.Descriptor().Fields().Get(i)
		see(message, at.to(field, 0))
		if field.Message() == nil || field.IsMap() || field.Message().ParentFile().Package() != "sluice.v1" || !message.Has(field) ||
			has(field, annotations.FieldBehavior_OUTPUT_ONLY) {
			continue
		}
		if !field.IsList() {
			visit(message.Get(field).Message(), at.to(field, 0), see)
			continue
		}
		for j := range message.Get(field).List().Len() {
			visit(message.Get(field).List().Get(j).Message(), at.to(field, j), see)
		}
	}
}

// admin returns one connection of an administrator for all calls of a test.
func (s *system) admin() *grpc.ClientConn {
	if s.administrator == nil {
		s.administrator = s.as("admin")
	}
	return s.administrator
}

// send calls the method of a request.
func (s *system) send(request proto.Message) (proto.Message, error) {
	s.t.Helper()
	method := managed()[request.ProtoReflect().Descriptor().FullName()]
	response, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		s.t.Fatal(err)
	}
	answer := response.New().Interface()
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	caller := s.admin()
	if method.Name() == "RenewCertificate" { // for gateways only
		caller = s.as("gateway")
	}
	if !method.IsStreamingServer() {
		return answer, caller.Invoke(s.t.Context(), path, request, answer)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	stream, err := caller.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err == nil {
		err = errors.Join(stream.SendMsg(request), stream.CloseSend())
	}
	if err == nil {
		err = stream.RecvMsg(answer) // the first message
	}
	return answer, err
}

// names reports whether an error names a field.
func names(err error, field string) bool {
	for _, detail := range status.Convert(err).Details() {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, violation := range bad.GetFieldViolations() {
			if violation.GetField() == field {
				return true
			}
		}
	}
	return false
}

// simple returns a request that has no object: with a name, and a kind.
func simple(method protoreflect.MethodDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		panic(err)
	}
	request := found.New()
	for i := range method.Input().Fields().Len() {
		field := method.Input().Fields().Get(i)
		switch {
		case field.Name() == "kind":
			request.Set(field, protoreflect.ValueOfString("Volume"))
		case field.Kind() == protoreflect.StringKind && field.Name() != "page_token" && !field.IsList():
			request.Set(field, protoreflect.ValueOfString("absent"))
		case field.Name() == "dry_run":
			request.Set(field, protoreflect.ValueOfBool(true))
		case field.Kind() == protoreflect.EnumKind && required(field):
			request.Set(field, protoreflect.ValueOfEnum(1))
		}
	}
	return request.Interface()
}

// allRequests returns requests of all methods; of streams only those with a REQUIRED field. Those that create or update have each field
// that a caller can set.
func allRequests() []proto.Message {
	requests := changes()
	given := map[protoreflect.FullName]bool{}
	for _, request := range requests {
		given[request.ProtoReflect().Descriptor().FullName()] = true
	}
	for name, method := range managed() {
		if !given[name] && (!method.IsStreamingServer() || needs(method)) {
			requests = append(requests, simple(method))
		}
	}
	return requests
}

// needs reports whether the request of a method has a REQUIRED field.
func needs(method protoreflect.MethodDescriptor) bool {
	for i := range method.Input().Fields().Len() {
		if required(method.Input().Fields().Get(i)) {
			return true
		}
	}
	return false
}

// neededByNew are fields that a new object needs, and that an update may leave out, because the stored value then stays.
var neededByNew = []string{"spec.rbd.key", "spec.chap.password", "spec.mutualChap.password"}

// inYAML returns the path of a field of a request as users write it: from the object on, in lowerCamelCase.
func inYAML(path string) string {
	if _, rest, found := strings.Cut(path, "."); found && (strings.HasPrefix(rest, "spec") || strings.HasPrefix(rest, "meta")) {
		path = rest
	}
	for {
		before, after, found := strings.Cut(path, "_")
		if !found {
			return path
		}
		path = before + strings.ToUpper(after[:1]) + after[1:]
	}
}

func TestARequestWithoutARequiredFieldIsRefusedByItsName(t *testing.T) {
	s := start(t)
	proven := map[protoreflect.FullName]bool{}
	for _, request := range allRequests() {
		kind := request.ProtoReflect().Descriptor().Name()
		visit(request.ProtoReflect(), nil, func(message protoreflect.Message, at place) {
			field := at[len(at)-1].field
			if !message.Has(field) {
				if required(field) {
					t.Errorf("%s: the request of this test lacks %s, which is REQUIRED", kind, at)
				}
				return
			}
			_, err := s.send(without(request, at))
			refused := status.Code(err) == codes.InvalidArgument && names(err, inYAML(at.String()))
			switch {
			case required(field) && !refused:
				t.Errorf("%s without %s, which is REQUIRED: %v", kind, at, err)
			case !required(field) && refused && !slices.Contains(neededByNew, inYAML(at.String())):
				t.Errorf("%s without %s, which is not REQUIRED: %v", kind, at, err)
			}
			proven[field.FullName()] = true
		})
	}
	for name, field := range requestFields() {
		if required(field) && !proven[name] {
			t.Errorf("%s is REQUIRED, and no request of this test has it", name)
		}
	}
}
