package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// The services have the same shape of request and response for every kind, so calls are made by name: `Get` of a Volume is
// VolumeService.GetVolume with a GetVolumeRequest. A test verifies that shape for every kind.

const api = "sluice.v1."

// message returns an empty message by its name in the API.
func message(name string) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(api + name))
	if err != nil {
		return nil, fmt.Errorf("the API has no message %s", name)
	}
	return found.New().Interface(), nil
}

// call makes a unary call of a kind's service: verb and noun name the method, fields fill the request.
func (k *kind) call(ctx context.Context, connection *grpc.ClientConn, verb, noun string, fields map[string]any,
) (proto.Message, error) {
	request, err := message(verb + noun + "Request")
	if err != nil {
		return nil, err
	}
	for name, value := range fields {
		if err := set(request, name, value); err != nil {
			return nil, err
		}
	}
	response, err := message(verb + noun + "Response")
	if err != nil {
		return nil, err
	}
	return response, connection.Invoke(ctx, k.method(verb+noun), request, response)
}

func set(to proto.Message, name string, value any) error {
	reflected := to.ProtoReflect()
	field := reflected.Descriptor().Fields().ByName(protoreflect.Name(name))
	if field == nil {
		return fmt.Errorf("%s has no field %s", reflected.Descriptor().Name(), name)
	}
	if m, ok := value.(proto.Message); ok {
		reflected.Set(field, protoreflect.ValueOfMessage(m.ProtoReflect()))
		return nil
	}
	reflected.Set(field, protoreflect.ValueOf(value))
	return nil
}

// objectIn returns the object in a response to Create, Get, Update or Delete.
func (k *kind) objectIn(response proto.Message) proto.Message {
	fields := response.ProtoReflect().Descriptor().Fields()
	return response.ProtoReflect().Get(fields.ByName(protoreflect.Name(k.field))).Message().Interface()
}

func (k *kind) get(ctx context.Context, connection *grpc.ClientConn, name string) (proto.Message, error) {
	response, err := k.call(ctx, connection, "Get", k.message, map[string]any{"name": name})
	if err != nil {
		return nil, err
	}
	return k.objectIn(response), nil
}

// page is a response to a List call of any kind.
type page interface {
	proto.Message
	client.ListResponse
}

// list returns all objects with these labels; nil: all.
func (k *kind) list(ctx context.Context, connection *grpc.ClientConn, labels map[string]string) ([]proto.Message, error) {
	request, err := message("List" + k.messages + "Request")
	if err != nil {
		return nil, err
	}
	if err := set(request, "options", &pb.ListOptions{LabelSelector: labels}); err != nil {
		return nil, err
	}
	listed := func(ctx context.Context, request client.ListRequest, with ...grpc.CallOption) (page, error) {
		response, err := message("List" + k.messages + "Response")
		if err != nil {
			return nil, err
		}
		return response.(page), connection.Invoke(ctx, k.method("List"+k.messages), request, response, with...)
	}
	return client.Collect(client.All(ctx, listed, request.(client.ListRequest), k.objectsIn))
}

// objectsIn returns the objects in a response to List.
func (k *kind) objectsIn(response page) []proto.Message {
	reflected := response.ProtoReflect()
	list := reflected.Get(reflected.Descriptor().Fields().ByName(protoreflect.Name(k.fields))).List()
	all := make([]proto.Message, list.Len())
	for i := range all {
		all[i] = list.Get(i).Message().Interface()
	}
	return all
}

// method is the full name of a call of the kind's service.
func (k *kind) method(call string) string { return "/" + api + k.message + "Service/" + call }

// change is one step of a watch; object is nil for Reset and Bookmark.
type change struct {
	kind    pb.ChangeType
	object  proto.Message
	version int64
}

// watch calls tell for the changes after a version (0: all objects first) until tell returns true.
func (k *kind) watch(ctx context.Context, connection *grpc.ClientConn, after int64, tell func(change) bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	request, err := message("Watch" + k.messages + "Request")
	if err != nil {
		return err
	}
	if err := set(request, "options", &pb.WatchOptions{ResourceVersion: after}); err != nil {
		return err
	}
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, k.method("Watch"+k.messages), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) { // after io.EOF the next RecvMsg returns the cause
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		response, err := message("Watch" + k.messages + "Response")
		if err != nil {
			return err
		}
		if err := stream.RecvMsg(response); err != nil {
			return err
		}
		if tell(k.changeIn(response)) {
			return nil
		}
	}
}

func (k *kind) changeIn(response proto.Message) change {
	reflected := response.ProtoReflect()
	fields := reflected.Descriptor().Fields()
	received := change{
		kind:    pb.ChangeType(reflected.Get(fields.ByName("type")).Enum()),
		version: reflected.Get(fields.ByName("resource_version")).Int(),
	}
	if object := fields.ByName(protoreflect.Name(k.field)); reflected.Has(object) {
		received.object = reflected.Get(object).Message().Interface()
	}
	return received
}
