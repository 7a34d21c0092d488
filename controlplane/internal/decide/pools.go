package decide

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// DecidePool updates a storage pool's status from the reports of gateways with a stream, fences former owners, and lists images
// without a volume.
func (v *LeaderView) DecidePool(name string, now time.Time) Decision {
	var decision Decision
	pool := v.StoragePools[name]
	if pool == nil {
		return decision
	}
	if pool.Spec.RBD != nil {
		v.decideFences(pool, now, &decision)
	}
	found, failing := v.poolReports(pool)
	if found != nil {
		if a, needed := poolUse(pool, *found); needed {
			decision.add(a)
		}
	}
	if a, needed := v.poolMarker(pool, found); needed {
		decision.add(a)
	}
	if c, needed := conditions(pool, v.poolConditions(pool, found, failing), now); needed {
		decision.add(c)
	}
	if found != nil && found.Problem == "" && (found.ListsImages || !pool.IsDirectory()) {
		v.compareImages(pool, now, &decision)
	}
	return decision
}

// poolReports returns the decisive report, from a gateway that reports no problem if there is one, and the reports of a problem.
func (v *LeaderView) poolReports(pool *model.StoragePool) (*model.PoolReport, []model.PoolReport) {
	var found *model.PoolReport
	var failing []model.PoolReport
	reports := v.pools[pool.Meta.UID]
	for _, number := range slices.Sorted(maps.Keys(reports)) {
		r := reports[number]
		if by, present := v.connected(number); !present || by != r.Gateway {
			continue
		}
		if r.Problem != "" {
			failing = append(failing, r)
		}
		if found == nil || found.Problem != "" && r.Problem == "" {
			found = &r
		}
	}
	return found, failing
}

// poolUse updates the pool's usage if it changed by more than noise.
func poolUse(pool *model.StoragePool, found model.PoolReport) (Action, bool) {
	have := pool.Status
	noise := found.CapacityBytes / 256
	alike := func(a, b int64) bool { return max(a-b, b-a) <= noise }
	if found.Problem != "" || have.SnapshotsSupported == found.SnapshotsSupported &&
		alike(have.CapacityBytes, found.CapacityBytes) && alike(have.UsedBytes, found.UsedBytes) &&
		have.MaxVolumeBytes == found.MaxImageBytes {
		return nil, false
	}
	now := *pool
	use := func(p *model.StoragePool) {
		p.Status.CapacityBytes, p.Status.UsedBytes = found.CapacityBytes, found.UsedBytes
		p.Status.SnapshotsSupported, p.Status.MaxVolumeBytes = found.SnapshotsSupported, found.MaxImageBytes
	}
	use(&now)
	var event *Event
	if now.NearlyFull() && !pool.NearlyFull() {
		event = &Event{true, "NearlyFull", fmt.Sprintf("%d of %d bytes are used, more than %d%%: make room, or add to it",
			found.UsedBytes, found.CapacityBytes, pool.Spec.WarnPercent)}
	}
	return modify(pool, func(o model.Object) bool {
		use(o.(*model.StoragePool))
		return true
	}, event), true
}

// reasonTakenOut is a reason of the Degraded condition of pools and volumes.
const reasonTakenOut = model.ReasonTakenOut

// takenOut returns that a volume's device was removed from its pool, with the remedy; empty: it was not. The owner continues to
// serve the volume, but no gateway can open it again.
func (v *LeaderView) takenOut(volume *model.Volume, pool *model.StoragePool) string {
	if pool == nil || pool.Spec.Local == nil || len(pool.Spec.Local.Devices) == 0 {
		return ""
	}
	reports := v.pools[pool.Meta.UID]
	for _, number := range slices.Sorted(maps.Keys(reports)) {
		r := reports[number]
		if by, present := v.connected(number); !present || by != r.Gateway {
			continue
		}
		if device, found := r.TakenOut[model.VolumeLocation(volume)]; found {
			return fmt.Sprintf("device %s was taken out of pool %s and holds volume %s, which can't be opened again: put it back into "+
				"spec.local.devices, or copy the data elsewhere and delete the volume", device, pool.Meta.Name, volume.Meta.Name)
		}
	}
	return ""
}

func (v *LeaderView) poolConditions(pool *model.StoragePool, found *model.PoolReport, failing []model.PoolReport) []model.Condition {
	if found == nil {
		return []model.Condition{condition(model.ConditionReady, false, reasonNoCandidate,
			"no gateway that has a stream reports it")}
	}
	well, full := found.Problem == "", pool.NearlyFull()
	var taken []string
	for _, volume := range v.Volumes {
		if volume.Spec.Pool != pool.Meta.Name {
			continue
		}
		if problem := v.takenOut(volume, pool); problem != "" {
			taken = append(taken, problem)
		}
	}
	slices.Sort(taken)
	wrong := append(taken, found.UnusableDevices...)
	if full {
		wrong = append(wrong, fmt.Sprintf("more than %d%% are used", pool.Spec.WarnPercent))
	}
	if n := len(pool.Status.MissingImages); n > 0 {
		wrong = append(wrong, fmt.Sprintf("the images of %d volumes are missing, such as %s: restore them, or delete the volumes", n,
			pool.Status.MissingImages[0]))
	}
	for _, r := range failing {
		wrong = append(wrong, fmt.Sprintf("gateway %s: %s", v.gatewayName(r.Gateway.Number), r.Problem))
	}
	reason := "Healthy"
	switch {
	case slices.ContainsFunc(failing, func(r model.PoolReport) bool { return r.Unidentified }):
		reason = reasonUnidentified
	case len(failing) > 0:
		reason = "Problem"
	case len(taken) > 0:
		reason = reasonTakenOut
	case len(pool.Status.MissingImages) > 0:
		reason = reasonImageMissing
	case full:
		reason = model.ReasonNearlyFull
	case len(wrong) > 0:
		reason = model.ReasonDevicesUnusable
	}
	state := cmp.Or(found.Problem, "gateways reach it")
	if !well && len(found.UnusableDevices) > 0 {
		state += ": " + strings.Join(found.UnusableDevices, "; ")
	}
	return []model.Condition{
		condition(model.ConditionReady, well, choose(well, "Reachable", choose(found.Unidentified, reasonUnidentified, "Problem")), state),
		condition(model.ConditionDegraded, len(wrong) > 0, reason, strings.Join(wrong, "; ")),
	}
}
