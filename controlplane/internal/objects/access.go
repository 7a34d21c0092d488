package objects

import (
	"sync"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// answers are those of Access that hold still: several readers of the same Objects may ask at a time.
type answers struct {
	mutex sync.Mutex
	of    map[string]answer // by the target's name
}

type answer struct {
	target *model.Target
	layout uint64
	shown  map[string][]placement.PortalRef
}

// Access is what each host of a target is shown of it, nearest first, by the host's name: placement's answer for a cluster of
// this target alone, which keeps path set and owners as they are. Gateways that leave the path set are not shown. The answer is
// kept until the layout is another: nobody changes it.
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
	if o.Targets[t.Meta.Name] == t { // else nobody would forget it
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
	for _, access := range placement.Plan(o.around(t)).Access {
		shown[access.Host] = access.Portals
	}
	return shown
}

// around is the target with what Plan needs to know for it.
func (o *Objects) around(t *model.Target) placement.Cluster {
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
	pools := map[string]bool{} // where volumes are is all that paths go by: one of each pool says that
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
