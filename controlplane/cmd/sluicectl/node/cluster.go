package node

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Cluster is the control plane of a node.
type Cluster interface {
	// Ensure creates an object, unless there is one of its name, which stays as it is.
	Ensure(ctx context.Context, object proto.Message) (created bool, err error)
	// WaitUsable waits until gateways and pools can be used.
	WaitUsable(ctx context.Context, objects ...proto.Message) error
}
