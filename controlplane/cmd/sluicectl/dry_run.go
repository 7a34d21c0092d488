package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// canDryRun refuses a dry run if the control plane's release does not support it for that request: it would ignore the field and
// make the change.
func canDryRun(ctx context.Context, connection *grpc.ClientConn, request proto.Message, dryRun bool) error {
	if !dryRun {
		return nil
	}
	name := request.ProtoReflect().Descriptor()
	files, err := describing(ctx, connection, string(name.FullName()))
	if err != nil {
		return err
	}
	for _, encoded := range files {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(encoded, file); err != nil {
			return err
		}
		for _, message := range file.GetMessageType() {
			for _, field := range message.GetField() {
				if message.GetName() == string(name.Name()) && field.GetName() == "dry_run" {
					return nil
				}
			}
		}
	}
	return status.Error(codes.FailedPrecondition, "the control plane is older than this sluicectl and has no dry run of this: nothing was "+
		"asked for; upgrade it first")
}

// describing asks the control plane for its definition of a message.
func describing(ctx context.Context, connection *grpc.ClientConn, symbol string) ([][]byte, error) {
	stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}})
	if err != nil {
		return nil, err
	}
	response, err := stream.Recv()
	_ = stream.CloseSend()
	return response.GetFileDescriptorResponse().GetFileDescriptorProto(), err
}
