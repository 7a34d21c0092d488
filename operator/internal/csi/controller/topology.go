package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// segments returns the topology to which a pool's volumes are pinned: the node of a local pool, unless the class says `any`.
// Other volumes are not pinned, because gateways are reachable from every node.
func segments(pool *pb.StoragePool, topology string) map[string]string {
	if local := pool.GetSpec().GetLocal(); local != nil && topology != topologyAny {
		return map[string]string{attachment.TopologyKey: local.GetNode()}
	}
	return nil
}

// within reports whether volumes with these segments can be reached from a topology.
func within(segments map[string]string, from *csi.Topology) bool {
	asked, says := from.GetSegments()[attachment.TopologyKey]
	return segments == nil || !says || asked == segments[attachment.TopologyKey]
}

func (s *Service) topologyOf(ctx context.Context, pool, topology string) ([]*csi.Topology, error) {
	got, err := s.pools.GetStoragePool(ctx, &pb.GetStoragePoolRequest{Name: pool})
	if err != nil {
		return nil, clientError(err)
	}
	pinned := segments(got.GetStoragePool(), topology)
	if pinned == nil {
		return nil, nil
	}
	return []*csi.Topology{{Segments: pinned}}, nil
}

// reachable refuses a volume that could not be reached from the requested topology, so that the scheduler selects another node.
func (s *Service) reachable(ctx context.Context, p parameters, asked *csi.TopologyRequirement) error {
	got, err := s.pools.GetStoragePool(ctx, &pb.GetStoragePoolRequest{Name: p.pool})
	if absent(err) {
		return invalid("parameter pool: there is no storage pool %q", p.pool)
	}
	if err != nil {
		return clientError(err)
	}
	pinned := segments(got.GetStoragePool(), p.topology)
	for _, topology := range asked.GetRequisite() {
		if within(pinned, topology) {
			return nil
		}
	}
	if len(asked.GetRequisite()) == 0 {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "volumes of pool %s are on node %s, where the volume may not be: "+
		"`topology: any` in the class lets pods elsewhere reach them over the network", p.pool, pinned[attachment.TopologyKey])
}
