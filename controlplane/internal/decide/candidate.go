package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// candidate returns the best gateway to own the volume, except some incarnations. If all have failed recently, the decision's
// wait states when one may be tried again.
func (o *owning) candidate(but ...model.GatewayRef) (model.GatewayRef, bool) {
	type choice struct {
		ref          model.GatewayRef
		failed, rank int
	}
	var all []choice
	planned := o.plan.owners[o.volume.Meta.Name]
	for _, name := range names(o.Gateways) {
		g := o.Gateways[name]
		ref, present := o.connected(g.Status.Number)
		if !present || slices.Contains(but, ref) || !o.mayOwn(g, ref) {
			continue
		}
		f := o.failures[o.volume.Meta.Name][ref.Number]
		if left := Backoff(f.count) - o.now.Sub(f.at); f.count > 0 && left > 0 {
			o.decision.wait(left)
			continue
		}
		c := choice{ref: ref, failed: f.count, rank: 2}
		if ref.Number == planned {
			c.rank = 1
		}
		if move := o.volume.Status.Move; move != nil && move.To == ref.Number {
			c.rank = 0 // requested by a user; the owner that was to hand over is fenced by now
		}
		if leaves(g) || o.gaveUp(ref) {
			c.rank = 3 // better than no owner
		}
		if o.poolProblem(g, ref) != "" {
			c.rank = 4 // its last report on the pool may be outdated
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return model.GatewayRef{}, false
	}
	best := slices.MinFunc(all, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.failed, b.failed), cmp.Compare(a.rank, b.rank),
			cmp.Compare(len(o.holding(a.ref.Number)), len(o.holding(b.ref.Number))),
			cmp.Compare(a.ref.Number, b.ref.Number))
	})
	return best.ref, true
}

// anyCandidate reports whether any gateway can own the volume, now or after its backoff.
func (o *owning) anyCandidate() bool {
	for _, g := range o.Gateways {
		if ref, present := o.connected(g.Status.Number); present && o.mayOwn(g, ref) {
			return true
		}
	}
	return false
}

// gaveUp reports whether a gateway has closed the volume in the present epoch without an order to do so: its process ends, or it
// lost the volume.
func (o *owning) gaveUp(ref model.GatewayRef) bool {
	r, known := o.report(o.volume.Meta.UID, ref)
	return known && o.ownership.State == model.Orphaned && r.Epoch == o.ownership.Epoch && ends(r.State)
}

// takeoverPossible reports whether a gateway can be expected to own the volume soon (R11). A gateway that has failed
// TakeoverAttempts times in succession is tried again, but hosts no longer wait for it.
func (v *LeaderView) takeoverPossible(volume *model.Volume) bool {
	o := v.owning(volume, time.Time{}, &Decision{})
	if o.pool == nil || !o.wantsOwner() {
		return false
	}
	for _, g := range o.Gateways {
		ref, present := o.connected(g.Status.Number)
		if present && o.mayOwn(g, ref) && o.failures[volume.Meta.Name][ref.Number].count < TakeoverAttempts {
			return true
		}
	}
	return false
}

// leaves reports whether a gateway must not receive new volumes or paths.
func leaves(g *model.Gateway) bool {
	return g.Spec.Cordoned || g.Status.Drain || g.Meta.Deleting() || g.Status.Health == model.GatewayNotServing
}

// mayOwn reports whether a gateway reaches the volume's data and exports its target. A volume that no target exports may be taken
// by any gateway that reaches it, to be closed.
func (o *owning) mayOwn(g *model.Gateway, ref model.GatewayRef) bool { return o.obstacle(g, ref) == "" }

// obstacle returns why a gateway may not own the volume; empty: it may.
func (o *owning) obstacle(g *model.Gateway, ref model.GatewayRef) string {
	l := o.links[ref.Number]
	unable := ""
	if l != nil && l.connection != nil {
		unable = o.unable(g, l.connection)
	}
	switch {
	case l == nil || l.connection == nil:
		return "has no stream to the control plane"
	case unable != "":
		return unable
	case o.target != nil && !slices.Contains(o.target.Status.PathSet, g.Status.Number):
		return "is not in the target's path set"
	}
	return ""
}

// unable returns why a gateway with a stream cannot own any volume of the pool.
func (o *owning) unable(g *model.Gateway, c *model.GatewayConnection) string {
	switch {
	case !reaches(g, c, o.pool):
		return "does not reach the storage pool"
	case !o.Serves(g, o.pool) && o.volume.Status.Ownership.Owner != c.Ref && o.volume.Status.Ownership.Next != c.Ref:
		return "is of gateway pool " + g.Spec.GatewayPool + ", which storage pool " + o.pool.Meta.Name + " is not for (spec.gatewayPools)"
	case !o.local() && !o.hasClient(o.pool, c.Ref):
		return "could not be fenced in the storage pool: it has not reported its Ceph client there"
	}
	return ""
}

// poolProblem is unable, or the problem with a pool in Ceph that the gateway reported last. That may be over, but no volume is
// moved there without need.
func (o *owning) poolProblem(g *model.Gateway, ref model.GatewayRef) string {
	unable := o.unable(g, o.links[ref.Number].connection)
	r, known := o.pools[o.pool.Meta.UID][ref.Number]
	problem := ""
	if known && r.Gateway == ref && !o.local() {
		problem = r.Problem
	}
	switch {
	case unable != "" && problem != "":
		return unable + " (" + problem + ")"
	case unable != "":
		return unable
	case problem != "":
		return "has a problem with the storage pool: " + problem
	}
	return ""
}
