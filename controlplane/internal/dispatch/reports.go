package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// metrics count the messages of gateways that the control plane does not accept.
type metrics struct {
	ignored *prometheus.CounterVec
	floods  prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_controlplane_gateway_reports_ignored_total",
			Help: "Reports and requests of gateways about objects that do not exist or that the gateway has nothing to do with.",
		}, []string{"kind"}),
		floods: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_controlplane_gateway_floods_total",
			Help: "Gateway streams that were closed because a message, or the rate of messages, was beyond the bounds.",
		}),
	}
	if registry != nil {
		registry.MustRegister(m.ignored, m.floods)
	}
	return m
}

// floods has the time until which each flooding gateway is refused: at most one entry for each gateway in the store.
type floods struct {
	mutex sync.Mutex
	until map[string]time.Time
}

func (f *floods) note(gateway string, now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.until == nil {
		f.until = map[string]time.Time{}
	}
	for name, until := range f.until {
		if now.After(until) {
			delete(f.until, name)
		}
	}
	f.until[gateway] = now.Add(floodPause)
}

// refusal returns why a gateway may not connect yet; nil: it may.
func (f *floods) refusal(gateway string, now time.Time) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if left := f.until[gateway].Sub(now); left > 0 {
		return status.Errorf(codes.ResourceExhausted, "gateway %s sent too much a moment ago: connect again in %v", gateway,
			left.Round(time.Second))
	}
	return nil
}

// ignore counts a report that is not accepted.
func (g *gatewayStream) ignore(kind, id string) {
	g.service.metrics.ignored.WithLabelValues(kind).Inc()
	g.log.Debug("a report is ignored: the gateway has nothing to do with its object", "kind", kind, "id", shortened(id))
}

// concernsVolume reports whether a gateway may report on a volume: it is the owner or next owner, is in the path set of its
// target, or could own a volume without an owner (its lock may then be the only proof of an owner, R2).
func (g *gatewayStream) concernsVolume(o *objects.Objects, uid string) bool {
	volume := o.VolumeByUID(uid)
	if volume == nil {
		return false
	}
	owned := volume.Status.Ownership
	if owned.Owner.Number == g.number || owned.Next.Number == g.number {
		return true
	}
	if target := o.TargetOf(volume.Meta.Name); target != nil && slices.Contains(target.Status.PathSet, g.number) {
		return true
	}
	gateway, pool := o.Gateways[g.name], o.StoragePools[volume.Spec.Pool]
	return owned.Owner.IsZero() && gateway != nil && pool != nil && o.Serves(gateway, pool)
}

// concernsPool reports whether a gateway may report on a pool, which is true if it receives the pool.
func (g *gatewayStream) concernsPool(uid string) bool {
	concerns := false
	g.service.options.View.Read(func(o *objects.Objects) {
		gateway, pool := o.Gateways[g.name], o.StoragePoolByUID(uid)
		if gateway == nil || pool == nil {
			return
		}
		if concerns = o.Serves(gateway, pool); concerns {
			return
		}
		for _, volume := range o.Volumes { // rare: the gateway lost the pool, but still owns volumes in it
			owned := volume.Status.Ownership
			if volume.Spec.Pool == pool.Meta.Name && (owned.Owner.Number == g.number || owned.Next.Number == g.number) {
				concerns = true
				return
			}
		}
	})
	return concerns
}

// volumeReports returns the reports that concern the gateway, by uid.
func (g *gatewayStream) volumeReports(observed []*pb.VolumeObserved) map[string]model.VolumeObservation {
	all := map[string]model.VolumeObservation{}
	g.service.options.View.Read(func(o *objects.Objects) {
		for _, v := range observed {
			if g.concernsVolume(o, v.GetUid()) {
				all[v.GetUid()] = volumeObservation(v)
			} else {
				g.ignore("volume", v.GetUid())
			}
		}
	})
	return all
}

// knownLoads drops the loads of volumes that do not exist or do not concern the gateway.
func (g *gatewayStream) knownLoads(loads []*pb.VolumeLoad) []*pb.VolumeLoad {
	var all []*pb.VolumeLoad
	g.service.options.View.Read(func(o *objects.Objects) {
		for _, load := range loads {
			if !g.concernsVolume(o, load.GetUid()) {
				g.ignore("load", load.GetUid())
				continue
			}
			all = append(all, load)
		}
	})
	return all
}

// ownSessions drops sessions with targets that the gateway does not export, and of hosts that these targets do not admit.
// Sessions count for their host on all gateways, so a false one would end others. The view may lag behind the state that the
// gateway applied.
func (g *gatewayStream) ownSessions(ctx context.Context, put []*pb.SessionObserved) ([]*pb.SessionObserved, error) {
	own, other := g.splitSessions(put)
	if len(other) == 0 {
		return own, nil
	}
	if err := g.service.catchUp(ctx, 0); err != nil {
		return nil, err
	}
	own, other = g.splitSessions(put)
	for _, session := range other {
		g.ignore("session", session.GetTargetIqn())
	}
	return own, nil
}

func (g *gatewayStream) splitSessions(put []*pb.SessionObserved) (own, other []*pb.SessionObserved) {
	g.service.options.View.Read(func(o *objects.Objects) {
		for _, session := range put {
			if target := o.TargetByIQN(session.GetTargetIqn()); target != nil && slices.Contains(target.Status.PathSet, g.number) &&
				admits(o, target, session.GetHostUid()) {
				own = append(own, session)
			} else {
				other = append(other, session)
			}
		}
	})
	return own, other
}

// admits reports whether a session can belong to a host of the target. A gateway reports no host once the target no longer admits
// it.
func admits(o *objects.Objects, target *model.Target, hostUID string) bool {
	host := o.HostByUID(hostUID)
	return hostUID == "" || host != nil && slices.Contains(target.Spec.Hosts, host.Meta.Name)
}

// knownPeer reports whether a gateway has the number in a report.
func (g *gatewayStream) knownPeer(number uint32) (known bool) {
	g.service.options.View.Read(func(o *objects.Objects) { known = o.GatewayByNumber(number) != nil })
	if !known {
		g.ignore("peer", "")
	}
	return known
}

// loadable refuses to load reservations in an epoch of which another gateway is the owner (mayLoad). As in mayCommit, the view
// may lag behind.
func (g *gatewayStream) loadable(ctx context.Context, uid string, epoch uint64) error {
	owned, inPathSet, known := g.assignment(uid)
	if !known || owned.Epoch < epoch || owned.Epoch == epoch && !g.mayLoad(owned, inPathSet) {
		if err := g.service.catchUp(ctx, 0); err != nil {
			return err
		}
		owned, inPathSet, known = g.assignment(uid)
	}
	if known && (owned.Epoch != epoch || g.mayLoad(owned, inPathSet)) {
		return nil // for another epoch the store answers that it has ended
	}
	g.ignore("reservations", uid)
	return fmt.Errorf("%w: in epoch %d gateway %s is not its owner", model.ErrFenced, epoch, g.name)
}

func (g *gatewayStream) assignment(uid string) (owned model.Ownership, inPathSet, known bool) {
	g.service.options.View.Read(func(o *objects.Objects) {
		volume := o.VolumeByUID(uid)
		if known = volume != nil; !known {
			return
		}
		owned = volume.Status.Ownership
		target := o.TargetOf(volume.Meta.Name)
		inPathSet = target != nil && slices.Contains(target.Status.PathSet, g.number)
	})
	return owned, inPathSet, known
}

// mayLoad reports whether a gateway may read the reservations of a volume in an epoch: it is the owner or the next owner (R8).
// While there is no owner, a gateway in the path set may, because it may still serve the volume behind its lock.
func (g *gatewayStream) mayLoad(owned model.Ownership, inPathSet bool) bool {
	return owned.Owner == g.connection.Ref || owned.Next == g.connection.Ref || owned.Owner.IsZero() && inPathSet
}
