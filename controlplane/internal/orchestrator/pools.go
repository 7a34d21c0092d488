package orchestrator

import (
	"cmp"
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// DecidePool brings a storage pool's status up to what a gateway that has a stream reports of it.
func (v *View) DecidePool(name string, now time.Time) Decision {
	var d Decision
	pool := v.StoragePools[name]
	if pool == nil {
		return d
	}
	var found *store.PoolReport
	for number, r := range v.pools[pool.Meta.UID] {
		if by, present := v.connected(number); present && by == r.Gateway &&
			(found == nil || number < found.Gateway.Number) {
			found = &r
		}
	}
	if found == nil {
		c, needed := conditions(pool, []model.Condition{condition(model.ConditionReady, false, reasonNoCandidate,
			"no gateway that has a stream reports it")}, now)
		if needed {
			d.add(c)
		}
		return d
	}
	have := pool.Status
	noise := found.CapacityBytes / 256
	if have.CapacityBytes != found.CapacityBytes || have.SnapshotsSupported != found.SnapshotsSupported ||
		max(have.UsedBytes-found.UsedBytes, found.UsedBytes-have.UsedBytes) > noise {
		report := *found
		d.add(modify(pool, func(o model.Object) bool {
			status := &o.(*model.StoragePool).Status
			status.CapacityBytes, status.UsedBytes = report.CapacityBytes, report.UsedBytes
			status.SnapshotsSupported = report.SnapshotsSupported
			return true
		}, nil))
	}
	full := found.CapacityBytes > 0 && found.UsedBytes >= found.CapacityBytes/100*int64(pool.Spec.WarnPercent)
	well := found.Problem == ""
	c, needed := conditions(pool, []model.Condition{
		condition(model.ConditionReady, well, choose(well, "Reachable", "Problem"), cmp.Or(found.Problem, "gateways reach it")),
		condition(model.ConditionDegraded, full, choose(full, "NearlyFull", "EnoughSpace"),
			choose(full, fmt.Sprintf("more than %d%% are used", pool.Spec.WarnPercent), "")),
	}, now)
	if needed {
		d.add(c)
	}
	return d
}
