package node

import (
	"context"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Cluster is the control plane of a node.
type Cluster interface {
	// Ensure creates an object, unless there is one of its name, which stays as it is.
	Ensure(ctx context.Context, object proto.Message) (created bool, err error)
	// ImportAuthority stores a certificate authority with its private key (PEM), so that the control plane signs certificates. The same
	// authority can be stored again.
	ImportAuthority(ctx context.Context, certificate, key string) error
	// Fabrics are those of a gateway pool.
	Fabrics(ctx context.Context, gatewayPool string) ([]*pb.Fabric, error)
	// Members are those of the embedded etcd.
	Members(ctx context.Context) ([]*pb.Member, error)
	// WaitUsable waits until gateways and pools can be used.
	WaitUsable(ctx context.Context, objects ...proto.Message) error
}
