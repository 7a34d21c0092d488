package objects

import (
	"sync"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// answers caches results of Access. It is locked, because several readers of the same Objects may call Access concurrently.
type answers struct {
	mutex sync.Mutex
	of    map[string]answer // by the target's name
}

type answer struct {
	target *model.Target
	layout uint64
	shown  map[string][]placement.PortalRef
}

// Access returns the portals of a target that each host is shown, nearest first, by the host's name. It is the result of
// placement for a cluster of this target alone, which keeps path set and owners. Gateways that leave the path set are not shown.
// The result is cached until the layout changes, so callers must not modify it.
func (o *Objects) Access(t *model.Target) map[string][]placement.PortalRef {
	o.answers.mutex.Lock()
	kept, known := o.answers.of[t.Meta.Name]
	o.answers.mutex.Unlock()
	if known && kept.target == t && kept.layout == o.layout {
		return kept.shown
	}
	shown := o.access(t)
	o.answers.mutex.Lock()
	defer o.answers.mutex.Unlock()
	if o.Targets[t.Meta.Name] == t { // otherwise the entry would never be removed
		o.answers.of[t.Meta.Name] = answer{t, o.layout, shown}
	}
	return shown
}

func (a *answers) forget(target string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.of, target)
}

func (o *Objects) access(t *model.Target) map[string][]placement.PortalRef {
	shown := map[string][]placement.PortalRef{}
	for _, access := range placement.Plan(o.placementInput(t)).Access {
		shown[access.Host] = access.Portals
	}
	return shown
}

// placementInput returns the target with all objects that Plan needs for it.
func (o *Objects) placementInput(t *model.Target) placement.Cluster {
	cluster := placement.Cluster{Policy: placement.Policy{MaxMoves: -1}}
	for _, fabric := range o.Fabrics {
		cluster.Fabrics = append(cluster.Fabrics, placement.FabricFrom(fabric))
	}
	target := placement.TargetFrom(t)
	target.PathSet = t.Shown()
	target.Paths = int32(len(target.PathSet))
	for _, number := range target.PathSet {
		if gateway := o.GatewayByNumber(number); gateway != nil {
			cluster.Gateways = append(cluster.Gateways, placement.GatewayFrom(gateway, 0))
		}
	}
	target.Volumes = nil
	pools := map[string]bool{} // paths depend only on the locations of volumes, so one volume of each pool suffices
	for _, lun := range t.Spec.Luns {
		if volume := o.Volumes[lun.Volume]; volume != nil && !pools[volume.Spec.Pool] {
			pools[volume.Spec.Pool] = true
			target.Volumes = append(target.Volumes, lun.Volume)
			cluster.Volumes = append(cluster.Volumes,
				placement.VolumeFrom(volume, o.StoragePools[volume.Spec.Pool], 0))
		}
	}
	for _, name := range t.Spec.Hosts {
		if host := o.Hosts[name]; host != nil {
			cluster.Hosts = append(cluster.Hosts, placement.HostFrom(host))
		}
	}
	cluster.Targets = []placement.Target{target}
	return cluster
}
