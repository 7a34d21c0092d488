package decide

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// These functions return the objects that must be decided on after a change. If they return too many, time is lost; if too few,
// an object waits for the next decision on everything.

// Everything returns the keys of all known objects and jobs.
func (v *LeaderView) Everything() []Key {
	var all []Key
	for _, rules := range kinds {
		for _, name := range rules.names(v) {
			all = append(all, Key{rules.kind, name})
		}
	}
	return all
}

// TouchedBy returns the objects that a change of an object affects. before is nil if the object is new.
func (v *LeaderView) TouchedBy(before, object model.Object) []Key {
	touched := []Key{{object.Kind(), object.Metadata().Name}}
	if others := rulesOf(object.Kind()).touched; others != nil {
		touched = append(touched, others(v, before, object)...)
	}
	return touched
}

func (v *LeaderView) touchedByTarget(before, object model.Object) []Key {
	var touched []Key
	for _, t := range []model.Object{before, object} {
		if t, ok := t.(*model.Target); ok && t != nil {
			for _, lun := range t.Spec.Luns {
				touched = append(touched, Key{model.KindVolume, lun.Volume})
			}
			touched = append(touched, v.leaving(t.Status.PathSet)...)
		}
	}
	return touched
}

func (v *LeaderView) touchedByChangedGateway(before, object model.Object) []Key {
	was, known := before.(*model.Gateway)
	gateway := object.(*model.Gateway)
	if known && was.Status.Health == gateway.Status.Health && was.Status.Incarnation == gateway.Status.Incarnation &&
		was.Status.Drain == gateway.Status.Drain && was.Meta.Generation == gateway.Meta.Generation {
		return nil
	}
	return v.touchedByGateway(gateway.Status.Number)
}

// touchedByPool returns the volumes of a pool if a device was removed, storage is not identified, an image is missing, or such a
// problem ended.
func (v *LeaderView) touchedByPool(before, object model.Object) []Key {
	was, _ := before.(*model.StoragePool)
	pool := object.(*model.StoragePool)
	if was != nil && degraded(was.Status.Conditions) == degraded(pool.Status.Conditions) &&
		slices.Equal(was.Status.MissingImages, pool.Status.MissingImages) {
		return nil
	}
	return v.volumesMatching(func(volume *model.Volume) bool { return volume.Spec.Pool == pool.Meta.Name })
}

// touchedByHost returns the targets that list the host, because they may show it other portals now.
func (v *LeaderView) touchedByHost(_, object model.Object) []Key {
	var touched []Key
	for name, t := range v.Targets {
		if slices.Contains(t.Spec.Hosts, object.Metadata().Name) {
			touched = append(touched, Key{model.KindTarget, name})
		}
	}
	return touched
}

func (v *LeaderView) touchedBySnapshot(_, object model.Object) []Key {
	return v.volumesMatching(func(volume *model.Volume) bool {
		return volume.Spec.Source.Snapshot == object.Metadata().Name && volume.Status.CapacityBytes == 0
	})
}

func (v *LeaderView) volumesMatching(match func(*model.Volume) bool) []Key {
	var found []Key
	for name, volume := range v.Volumes {
		if match(volume) {
			found = append(found, Key{model.KindVolume, name})
		}
	}
	return found
}

func (v *LeaderView) touchedByVolume(before, object model.Object) []Key {
	var touched []Key
	volume := object.(*model.Volume)
	ownership := volume.Status.Ownership
	parties := []uint32{ownership.Owner.Number, ownership.Next.Number}
	if was, ok := before.(*model.Volume); ok {
		if other := v.VolumeByUID(was.Status.SharesWith); other != nil && volume.Status.SharesWith == "" {
			touched = append(touched, Key{model.KindVolume, other.Meta.Name}) // its deletion may wait for that
		}
		if was.Status.Ownership == ownership && was.Status.CapacityBytes == volume.Status.CapacityBytes {
			return touched
		}
		parties = append(parties, was.Status.Ownership.Owner.Number, was.Status.Ownership.Next.Number)
	}
	if ownership.State == model.Fencing {
		touched = append(touched, Key{model.KindStoragePool, volume.Spec.Pool})
	}
	if t := v.TargetOf(volume.Meta.Name); t != nil {
		touched = append(touched, Key{model.KindTarget, t.Meta.Name})
	}
	for name := range v.snapshots[volume.Meta.Name] {
		touched = append(touched, Key{model.KindSnapshot, name})
	}
	for name := range v.unmade[volume.Meta.Name] {
		touched = append(touched, Key{model.KindVolume, name})
	}
	return append(touched, v.leaving(parties)...)
}

// leaving returns the draining or deleted gateways among these: once they hold nothing, their status changes.
func (v *LeaderView) leaving(numbers []uint32) []Key {
	var touched []Key
	for _, number := range numbers {
		if g := v.GatewayByNumber(number); g != nil && (g.Status.Drain || g.Meta.Deleting()) {
			touched = append(touched, Key{model.KindGateway, g.Meta.Name})
		}
	}
	return touched
}

// touchedByGateway returns the objects affected by a gateway that connects, disconnects or is declared dead: the volumes that it
// holds, the volumes without an owner, and its peers.
func (v *LeaderView) touchedByGateway(number uint32) []Key {
	var touched []Key
	var volumes []*model.Volume
	for _, volume := range v.Volumes {
		ownership := volume.Status.Ownership
		held := ownership.Owner.Number == number || ownership.Next.Number == number
		settled := ownership.State == model.Owned && v.Standing(ownership.Owner) != Gone ||
			ownership.State == model.Unowned && volume.Status.CapacityBytes > 0 && v.target(volume.Meta.Name) == nil &&
				!volume.Meta.Deleting()
		if held || !settled {
			volumes = append(volumes, volume)
		}
	}
	v.busiestFirst(volumes)
	for _, volume := range volumes {
		touched = append(touched, Key{model.KindVolume, volume.Meta.Name})
	}
	for name, t := range v.Targets {
		if slices.Contains(t.Status.PathSet, number) {
			touched = append(touched, Key{model.KindTarget, name})
		}
	}
	for name, snapshot := range v.Snapshots {
		if !snapshot.Status.Ready || snapshot.Meta.Deleting() {
			touched = append(touched, Key{model.KindSnapshot, name})
		}
	}
	for name, g := range v.Gateways {
		if _, present := v.connected(g.Status.Number); g.Status.Number == number || !present {
			touched = append(touched, Key{model.KindGateway, name})
		}
	}
	return touched
}

// TouchedByRecord returns the objects that a report of a gateway affects.
func (v *LeaderView) TouchedByRecord(o model.Observed) []Key {
	switch {
	case o.Connection != nil:
		touched := []Key{{model.KindGateway, o.Connection.Gateway}}
		return append(touched, v.touchedByGateway(o.Connection.Ref.Number)...)
	case o.Volume != nil:
		if volume := v.VolumeByUID(o.Volume.UID); volume != nil {
			return []Key{{model.KindVolume, volume.Meta.Name}}
		}
	case o.Peer != nil:
		if g := v.GatewayByNumber(o.Peer.Peer.Number); g != nil {
			return []Key{{model.KindGateway, g.Meta.Name}}
		}
	case o.Applied != nil:
		return v.touchedByApplied(*o.Applied)
	case o.Load != nil:
		if g := v.GatewayByNumber(o.Load.Gateway.Number); g != nil && g.Status.AppliedVersion != o.Load.AppliedVersion {
			return []Key{{model.KindGateway, g.Meta.Name}}
		}
	case o.Pool != nil:
		if pool := v.StoragePoolByUID(o.Pool.UID); pool != nil {
			return []Key{{model.KindStoragePool, pool.Meta.Name}}
		}
	}
	return nil
}

func (v *LeaderView) touchedByApplied(r model.AppliedReport) []Key {
	find := rulesOf(r.Kind).reported
	if find == nil {
		return nil
	}
	if object := find(v, r); object != nil {
		return []Key{{r.Kind, object.Metadata().Name}}
	}
	return nil
}

// TouchedBySession returns the host of a session, because the session counts for its limit, and its target, which may no longer
// be shown at its portal.
func (v *LeaderView) TouchedBySession(s *model.Session) []Key {
	var touched []Key
	if host := v.HostByUID(s.HostUID); host != nil {
		touched = append(touched, Key{model.KindHost, host.Meta.Name})
	}
	if target := v.TargetByIQN(s.TargetIQN); target != nil {
		touched = append(touched, Key{model.KindTarget, target.Meta.Name})
	}
	return touched
}
