package decide

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// candidate is who could own the volume best, other than some incarnations. Where all have failed lately it says by the
// decision's wait when one may be tried again.
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
			c.rank = 0 // somebody asked for it; the owner that was to hand over is shut out by now
		}
		if leaves(g) {
			c.rank = 3 // better than nobody
		}
		if o.cutOff(g, ref) != "" {
			c.rank = 4 // what it has told of the pool may be over
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

// anyCandidate says that somebody could own the volume, now or once its turn comes again.
func (o *owning) anyCandidate() bool {
	for _, g := range o.Gateways {
		if ref, present := o.connected(g.Status.Number); present && o.mayOwn(g, ref) {
			return true
		}
	}
	return false
}

// leaves says that a gateway takes nothing new.
func leaves(g *model.Gateway) bool { return g.Spec.Cordoned || g.Status.Drain || g.Meta.Deleting() }

// mayOwn says whether a gateway reaches the volume's data and exports its target. A volume that nobody exports any more
// is taken by any gateway that reaches it, to be closed.
func (o *owning) mayOwn(g *model.Gateway, ref model.GatewayRef) bool { return o.obstacle(g, ref) == "" }

// obstacle is why a gateway may not own the volume; empty: it may.
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

// unable is why a gateway that has a stream cannot have any volume of the pool.
func (o *owning) unable(g *model.Gateway, c *model.GatewayConnection) string {
	switch {
	case !reaches(g, c, o.pool):
		return "does not reach the storage pool"
	case !o.Serves(g, o.pool) && o.volume.Status.Ownership.Owner != c.Ref && o.volume.Status.Ownership.Next != c.Ref:
		return "is of gateway pool " + g.Spec.GatewayPool + ", which storage pool " + o.pool.Meta.Name + " is not for (spec.gatewayPools)"
	case !o.local() && !o.hasClient(o.pool, c.Ref):
		return "could not be shut out of the storage pool: it has not told its client there"
	}
	return ""
}

// cutOff is unable, or what a gateway has told last of the pool in Ceph, which may be over: nothing is moved there without need.
func (o *owning) cutOff(g *model.Gateway, ref model.GatewayRef) string {
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
