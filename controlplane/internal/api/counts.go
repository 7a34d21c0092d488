package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// sessionCountsAge bounds the age of the counts of sessions, because counting reads the whole register.
const sessionCountsAge = time.Second

// Counts adds to the status of objects what other objects determine: counts of sessions, volumes, portals and hosts, and the names of
// gateways. It has no watch of its own: a watch of an object does not report that only such a count has changed.
type Counts struct {
	store *store.Store
	view  *view.Cache

	mutex sync.Mutex
	read  time.Time
	kept  sessionCounts
}

// sessionCounts are counts of sessions.
type sessionCounts struct {
	gateways map[uint32]int32
	hosts    map[string]int32 // by uid
	targets  map[string]int32 // by IQN
}

// NewCounts returns Counts that reads sessions from the store and all other objects from the view.
func NewCounts(s *store.Store, v *view.Cache) *Counts { return &Counts{store: s, view: v} }

// sessions counts the sessions in the store, at most once in sessionCountsAge. Callers must not change the result.
func (c *Counts) sessions(ctx context.Context) (sessionCounts, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.read.IsZero() && time.Since(c.read) < sessionCountsAge {
		return c.kept, nil
	}
	all, _, err := c.store.Sessions(ctx)
	if err != nil {
		return sessionCounts{}, err
	}
	c.kept = sessionCounts{map[uint32]int32{}, map[string]int32{}, map[string]int32{}}
	for _, session := range all {
		c.kept.gateways[session.GatewayNumber]++
		if session.HostUID != "" {
			c.kept.hosts[session.HostUID]++
		}
		c.kept.targets[session.TargetIQN]++
	}
	c.read = time.Now()
	return c.kept, nil
}

func (c *Counts) gateways(ctx context.Context, gateways []*pb.Gateway) error {
	sessions, err := c.sessions(ctx)
	if err != nil {
		return err
	}
	owned := map[uint32]int32{}
	c.view.Read(func(o *objects.Objects) {
		for _, volume := range o.Volumes {
			switch volume.Status.Ownership.State {
			case model.Opening, model.Owned, model.Moving:
				owned[volume.Status.Ownership.Owner.Number]++
			}
		}
	})
	for _, gateway := range gateways {
		gateway.Status.Sessions = sessions.gateways[gateway.GetStatus().GetNumber()]
		gateway.Status.VolumesOwned = owned[gateway.GetStatus().GetNumber()]
	}
	return nil
}

func (c *Counts) hosts(ctx context.Context, hosts []*pb.Host) error {
	sessions, err := c.sessions(ctx)
	for _, host := range hosts {
		host.Status.Sessions = sessions.hosts[host.GetMeta().GetUid()]
	}
	return err
}

// targets counts sessions, and sets the names of the paths' gateways and the portals of the ports.
func (c *Counts) targets(ctx context.Context, targets []*pb.Target) error {
	sessions, err := c.sessions(ctx)
	c.readNames(ctx, newest(targets), func(o *objects.Objects) bool {
		known := true
		for _, target := range targets {
			target.Status.Sessions = sessions.targets[target.GetSpec().GetIqn()]
			for _, path := range target.GetStatus().GetPaths() {
				gateway := o.GatewayByNumber(path.GetTargetPortGroup())
				if gateway != nil {
					namePath(path, gateway)
				}
				known = known && gateway != nil
			}
		}
		return known
	})
	return err
}

// newest returns the latest version of some objects.
func newest[P interface{ GetMeta() *pb.ObjectMeta }](objects []P) int64 {
	var version int64
	for _, object := range objects {
		version = max(version, object.GetMeta().GetResourceVersion())
	}
	return version
}

// readNames lets use add names of gateways to objects that were stored up to a version. If use reports that a name is missing, the view
// may be older than the objects: readNames waits for it, for a limited time, and use adds the names again.
func (c *Counts) readNames(ctx context.Context, version int64, use func(*objects.Objects) bool) {
	known := false
	c.view.Read(func(o *objects.Objects) { known = use(o) })
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, currentLimit)
	defer cancel()
	_ = c.view.WaitFor(ctx, version) // otherwise the watches are behind, and numbers are shown
	c.view.Read(func(o *objects.Objects) { use(o) })
}

func namePath(path *pb.TargetPath, gateway *model.Gateway) {
	path.Gateway = gateway.Meta.Name
	for _, port := range path.GetPorts() {
		for _, portal := range gateway.Spec.Portals {
			if gateway.Status.PortalGroupTags[portal.Fabric] == port.GetPortalGroupTag() {
				port.Address, port.Fabric = portal.Advertised, portal.Fabric
				break
			}
		}
	}
}

// volumes adds the names of gateways, which the status stores by number.
func (c *Counts) volumes(ctx context.Context, volumes []*pb.Volume) error {
	c.readNames(ctx, newest(volumes), func(o *objects.Objects) bool {
		known := true
		name := func(number uint32) string {
			known = known && (number == 0 || o.GatewayName(number) != "")
			return o.GatewayName(number)
		}
		for _, volume := range volumes {
			volume.Status.Owner = name(volume.GetStatus().GetOwnerGateway())
			if move := volume.GetStatus().GetRequestedMove(); move != nil {
				move.GatewayName = name(move.GetGateway())
			}
		}
		return known
	})
	return nil
}

// fabrics counts the portals on each fabric, and the hosts on its switches.
func (c *Counts) fabrics(_ context.Context, fabrics []*pb.Fabric) error {
	portals, hosts := map[string]int32{}, map[string]int32{}
	c.view.Read(func(o *objects.Objects) {
		for _, gateway := range o.Gateways {
			for _, portal := range gateway.Spec.Portals {
				portals[portal.Fabric]++
			}
		}
		for _, host := range o.Hosts {
			for _, attached := range host.Spec.Switches {
				fabric, _, _ := strings.Cut(attached, "/")
				hosts[fabric]++
			}
		}
	})
	for _, fabric := range fabrics {
		fabric.Status.Portals, fabric.Status.Hosts = portals[fabric.GetMeta().GetName()], hosts[fabric.GetMeta().GetName()]
	}
	return nil
}

func (c *Counts) storagePools(_ context.Context, pools []*pb.StoragePool) error {
	volumes := map[string]int32{}
	c.view.Read(func(o *objects.Objects) {
		for _, volume := range o.Volumes {
			volumes[volume.Spec.Pool]++
		}
	})
	for _, pool := range pools {
		pool.Status.Volumes = volumes[pool.GetMeta().GetName()]
	}
	return nil
}

func (c *Counts) gatewayPools(_ context.Context, pools []*pb.GatewayPool) error {
	all, ready := map[string]int32{}, map[string]int32{}
	c.view.Read(func(o *objects.Objects) {
		for _, gateway := range o.Gateways {
			all[gateway.Spec.GatewayPool]++
			if gateway.Status.Health == model.GatewayReady {
				ready[gateway.Spec.GatewayPool]++
			}
		}
	})
	for _, pool := range pools {
		pool.Status.Gateways = all[pool.GetMeta().GetName()]
		pool.Status.GatewaysReady = ready[pool.GetMeta().GetName()]
	}
	return nil
}
