package objects

import (
	"cmp"
	"slices"
	"sync/atomic"

	"sluice.dev/sluice/controlplane/internal/model"
)

// defaultGatewayPool receives the keys of pools without users where there are several gateway pools.
const defaultGatewayPool = "default"

// users are the gateway pools whose targets map volumes of a storage pool, by its name, as of a layout.
type users struct {
	layout uint64
	of     map[string]map[string]bool
}

// Serves says whether the gateways of a gateway's GatewayPool are for a storage pool: they receive its key, own its volumes and do its
// jobs. A local pool is for every gateway of its node. For a pool in Ceph it is StoragePool.spec.gatewayPools that decides, or
// where that is empty the targets that map its volumes, or where there is none the only gateway pool, or the one named `default`.
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

// poolUsers finds the users of all storage pools, once for each layout. Concurrent readers may both find them.
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

// poolUsersPointer keeps what poolUsers found.
type poolUsersPointer = atomic.Pointer[users]
