package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// poolsOf returns the pools in which a class can have volumes, in the order of their names: the one that it names, or all that
// have its labels.
func (s *Service) poolsOf(ctx context.Context, p parameters) ([]*pb.StoragePool, error) {
	var pools []*pb.StoragePool
	for pool, err := range client.All(ctx, s.pools.ListStoragePools,
		&pb.ListStoragePoolsRequest{Options: &pb.ListOptions{LabelSelector: p.poolSelector}}, (*pb.ListStoragePoolsResponse).GetStoragePools) {
		if err != nil {
			return nil, clientError(err)
		}
		if p.pool == "" || p.pool == pool.GetMeta().GetName() {
			pools = append(pools, pool)
		}
	}
	return pools, nil
}

// room returns the free bytes of a pool; 0 while the control plane says that the pool cannot be used.
func room(pool *pb.StoragePool) int64 {
	for _, condition := range pool.GetStatus().GetConditions() {
		if condition.GetType() == "Ready" && condition.GetStatus() == pb.ConditionStatus_CONDITION_STATUS_FALSE {
			return 0
		}
	}
	return max(0, pool.GetStatus().GetCapacityBytes()-pool.GetStatus().GetUsedBytes())
}

// largest returns the size in bytes of the largest volume that fits into a pool with this many free bytes.
func largest(pool *pb.StoragePool, free int64) int64 {
	size := min(free, maximumSize)
	if most := pool.GetStatus().GetMaxVolumeBytes(); most > 0 {
		size = min(size, most)
	}
	return size / mebibyte * mebibyte
}

// choosePool sets the pool of a new volume, where the class leaves a choice: of the first requested topology that has a pool with
// room for the volume, the pool with most room. A volume of an earlier, equal call stays in its pool.
func (s *Service) choosePool(ctx context.Context, p *parameters, volume string, bytes int64, asked *csi.TopologyRequirement) error {
	if p.pool != "" {
		return nil
	}
	pools, err := s.poolsOf(ctx, *p)
	if err != nil {
		return err
	}
	earlier, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: volume})
	if err != nil && !absent(err) {
		return clientError(err)
	}
	for _, pool := range pools {
		if err == nil && pool.GetMeta().GetName() == earlier.GetVolume().GetSpec().GetPool() {
			p.pool = pool.GetMeta().GetName()
			return nil
		}
	}
	topologies := slices.Concat(asked.GetPreferred(), asked.GetRequisite())
	if len(topologies) == 0 {
		topologies = []*csi.Topology{nil}
	}
	for _, topology := range topologies {
		fitting := slices.DeleteFunc(slices.Clone(pools), func(pool *pb.StoragePool) bool {
			return !within(segments(pool, p.topology), topology) || largest(pool, room(pool)) < bytes
		})
		if len(fitting) > 0 {
			p.pool = slices.MaxFunc(fitting, func(a, b *pb.StoragePool) int { return cmp.Compare(room(a), room(b)) }).GetMeta().GetName()
			return nil
		}
	}
	return noRoom(p, pools, bytes)
}

// noRoom says why no pool of a class can have a volume, so that the scheduler selects another node, and a person sees the reason.
func noRoom(p *parameters, pools []*pb.StoragePool, bytes int64) error {
	if len(pools) == 0 {
		return status.Errorf(codes.ResourceExhausted, "no storage pool has the labels of the class's parameter poolSelector, %s",
			selectorText(p.poolSelector))
	}
	const shown = 8
	var words []string
	for _, pool := range pools[:min(shown, len(pools))] {
		where := ""
		if local := pool.GetSpec().GetLocal(); local != nil {
			where = " on node " + local.GetNode()
		}
		words = append(words, fmt.Sprintf("%s%s has room for %d MiB", pool.GetMeta().GetName(), where, largest(pool, room(pool))/mebibyte))
	}
	if len(pools) > shown {
		words = append(words, fmt.Sprintf("%d pools more", len(pools)-shown))
	}
	return status.Errorf(codes.ResourceExhausted, "no storage pool that the requested nodes reach has room for %d MiB: %s",
		bytes/mebibyte, strings.Join(words, ", "))
}

func selectorText(selector map[string]string) string {
	var words []string
	for key, value := range selector {
		words = append(words, key+"="+value)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}
