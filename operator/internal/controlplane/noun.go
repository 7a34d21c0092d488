package controlplane

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Object is any message that stands for an object: a pb.Volume, a pb.Target…
type Object interface {
	proto.Message
	GetMeta() *pb.ObjectMeta
}

// Change is what a watch tells.
type Change[P Object] struct {
	Type    pb.ChangeType
	Object  P
	Version int64
}

// Noun is what can be done with the objects of one kind.
type Noun[P Object] struct {
	Kind   string
	Get    func(ctx context.Context, name string) (P, error)
	Create func(ctx context.Context, object P) (P, error)
	Update func(ctx context.Context, object P) (P, error)
	// Delete asks for deletion of the object with this uid; it is gone once Get says so.
	Delete func(ctx context.Context, name, uid string) (P, error)
	// Watch begins with the present objects where the version is 0. The function it returns gives one change at a time.
	Watch func(ctx context.Context, version int64) (func() (Change[P], error), error)
}

func only(uid string) *pb.DeleteOptions { return &pb.DeleteOptions{Uid: uid} }

func after(version int64) *pb.WatchOptions { return &pb.WatchOptions{ResourceVersion: version} }

// changes turns a stream of responses into one of changes.
func changes[R any, P Object](stream grpc.ServerStreamingClient[R], err error, read func(*R) Change[P],
) (func() (Change[P], error), error) {
	if err != nil {
		return nil, err
	}
	return func() (Change[P], error) {
		response, err := stream.Recv()
		if err != nil {
			return Change[P]{}, err
		}
		return read(response), nil
	}, nil
}
