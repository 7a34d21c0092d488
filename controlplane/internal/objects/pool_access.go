package objects

import (
	"cmp"
	"slices"
	"sync/atomic"

	"sluice.dev/sluice/controlplane/internal/model"
)

// defaultGatewayPool receives the keys of storage pools that no target uses, if there are several gateway pools.
const defaultGatewayPool = "default"

// users has the gateway pools whose targets map volumes of a storage pool, by that pool's name, for a layout.
type users struct {
	layout uint64
	of     map[string]map[string]bool
}

// Serves reports whether the gateways of a gateway's GatewayPool may use a storage pool: they receive its key, own its volumes
// and execute its jobs. A local pool belongs to every gateway of its node. For a pool in Ceph, StoragePool.spec.gatewayPools
// decides; if that is empty, the targets that map its volumes; if there are none, the only gateway pool, or the one named
// `default`.
func (o *Objects) Serves(gateway *model.Gateway, pool *model.StoragePool) bool {
	own := cmp.Or(gateway.Spec.GatewayPool, defaultGatewayPool)
	if pool.Spec.Local != nil {
		return pool.Spec.Local.Node == gateway.Spec.Node
	}
	if len(pool.Spec.GatewayPools) > 0 {
		return slices.Contains(pool.Spec.GatewayPools, own)
	}
	if users := o.poolUsers()[pool.Meta.Name]; len(users) > 0 {
		return users[own]
	}
	return own == defaultGatewayPool || len(o.GatewayPools) <= 1
}

// poolUsers computes the users of all storage pools, once for each layout. Concurrent readers may both compute them.
func (o *Objects) poolUsers() map[string]map[string]bool {
	if known := o.users.Load(); known != nil && known.layout == o.layout {
		return known.of
	}
	made := &users{o.layout, map[string]map[string]bool{}}
	for _, target := range o.Targets {
		if target.Meta.Deleting() {
			continue
		}
		for _, lun := range target.Spec.Luns {
			volume := o.Volumes[lun.Volume]
			if volume == nil {
				continue
			}
			if made.of[volume.Spec.Pool] == nil {
				made.of[volume.Spec.Pool] = map[string]bool{}
			}
			made.of[volume.Spec.Pool][cmp.Or(target.Spec.GatewayPool, defaultGatewayPool)] = true
		}
	}
	o.users.Store(made)
	return made.of
}

// poolUsersPointer caches the result of poolUsers.
type poolUsersPointer = atomic.Pointer[users]
