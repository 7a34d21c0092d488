package mirror

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Object is a message of an object of the control plane, such as *pb.Volume.
type Object interface {
	proto.Message
	GetMeta() *pb.ObjectMeta
}

// Change is one message of a watch.
type Change[P Object] struct {
	Type    pb.ChangeType
	Object  P
	Version int64
}

// Noun has the calls for the objects of one kind.
type Noun[P Object] struct {
	Kind   string
	Get    func(ctx context.Context, name string) (P, error)
	Create func(ctx context.Context, object P) (P, error)
	Update func(ctx context.Context, object P) (P, error)
	// Delete requests the deletion of the object with this uid. The deletion is complete when Get returns NotFound.
	Delete func(ctx context.Context, name, uid string) (P, error)
	// Watch begins with the present objects if the version is 0. The returned function waits for the next change.
	Watch func(ctx context.Context, version int64) (func() (Change[P], error), error)
}

func only(uid string) *pb.DeleteOptions { return &pb.DeleteOptions{Uid: uid} }

func after(version int64) *pb.WatchOptions { return &pb.WatchOptions{ResourceVersion: version} }

// changes converts a stream of responses to a stream of changes.
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
