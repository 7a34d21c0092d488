package orchestrator

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// What a change makes worth a look, besides what changed. Too much costs time, too little a wait for the next look at
// everything.

// Everything known.
func (v *View) Everything() []Key {
	var all []Key
	each := func(kind model.Kind, names []string) {
		for _, name := range names {
			all = append(all, Key{kind, name})
		}
	}
	each(model.KindGateway, names(v.Gateways))
	each(model.KindStoragePool, names(v.StoragePools))
	each(model.KindTarget, names(v.Targets))
	each(model.KindVolume, names(v.Volumes))
	each(model.KindSnapshot, names(v.Snapshots))
	each(model.KindHost, names(v.Hosts))
	each(KindJob, names(v.Jobs))
	return all
}

// touchedBy says what a change of an object concerns; before is nil where it is new.
func (v *View) touchedBy(before, object model.Object) []Key {
	touched := []Key{{object.Kind(), object.Metadata().Name}}
	switch o := object.(type) {
	case *model.Volume:
		touched = append(touched, v.touchedByVolume(before, o)...)
	case *model.Target:
		for _, t := range []model.Object{before, o} {
			if t, ok := t.(*model.Target); ok && t != nil {
				for _, lun := range t.Spec.Luns {
					touched = append(touched, Key{model.KindVolume, lun.Volume})
				}
				touched = append(touched, v.leaving(t.Status.PathSet)...)
			}
		}
	case *model.Gateway:
		if was, ok := before.(*model.Gateway); !ok || was.Status.Health != o.Status.Health ||
			was.Status.Incarnation != o.Status.Incarnation || was.Status.Drain != o.Status.Drain ||
			was.Meta.Generation != o.Meta.Generation {
			touched = append(touched, v.touchedByGateway(o.Status.Number)...)
		}
	case *model.StoragePool:
		was, _ := before.(*model.StoragePool)
		// A device was taken out, storage is not identified, an image is missing; or it is back.
		if was == nil || degraded(was.Status.Conditions) != degraded(o.Status.Conditions) ||
			!slices.Equal(was.Status.MissingImages, o.Status.MissingImages) {
			for name, volume := range v.Volumes {
				if volume.Spec.Pool == o.Meta.Name {
					touched = append(touched, Key{model.KindVolume, name})
				}
			}
		}
	case *model.Host:
		for name, t := range v.Targets {
			if slices.Contains(t.Spec.Hosts, o.Meta.Name) { // it may be shown other portals
				touched = append(touched, Key{model.KindTarget, name})
			}
		}
	case *model.Snapshot:
		for name, volume := range v.Volumes {
			if volume.Spec.Source.Snapshot == o.Meta.Name && volume.Status.CapacityBytes == 0 {
				touched = append(touched, Key{model.KindVolume, name})
			}
		}
	}
	return touched
}

func (v *View) touchedByVolume(before model.Object, volume *model.Volume) []Key {
	var touched []Key
	is := volume.Status.Ownership
	parties := []uint32{is.Owner.Number, is.Next.Number}
	if was, ok := before.(*model.Volume); ok {
		if other := v.VolumeByUID(was.Status.SharesWith); other != nil && volume.Status.SharesWith == "" {
			touched = append(touched, Key{model.KindVolume, other.Meta.Name}) // its deletion may wait for that
		}
		if was.Status.Ownership == is && was.Status.CapacityBytes == volume.Status.CapacityBytes {
			return touched
		}
		parties = append(parties, was.Status.Ownership.Owner.Number, was.Status.Ownership.Next.Number)
	}
	if is.State == model.Fencing {
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

// leaving are those gateways that are to be told drained once they hold nothing.
func (v *View) leaving(numbers []uint32) []Key {
	var touched []Key
	for _, number := range numbers {
		if g := v.GatewayByNumber(number); g != nil && (g.Status.Drain || g.Meta.Deleting()) {
			touched = append(touched, Key{model.KindGateway, g.Meta.Name})
		}
	}
	return touched
}

// touchedByGateway is what may go on or has to change when a gateway comes, goes or is given up: what it holds, what
// nobody serves, and what its peers wait to say.
func (v *View) touchedByGateway(number uint32) []Key {
	var touched []Key
	var volumes []*model.Volume
	for _, volume := range v.Volumes {
		is := volume.Status.Ownership
		held := is.Owner.Number == number || is.Next.Number == number
		settled := is.State == model.Owned && v.Standing(is.Owner) != Gone ||
			is.State == model.Unowned && volume.Status.CapacityBytes > 0 && v.target(volume.Meta.Name) == nil &&
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

// touchedByRecord says what an observation concerns.
func (v *View) touchedByRecord(o store.Observed) []Key {
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

func (v *View) touchedByApplied(r store.AppliedReport) []Key {
	switch r.Kind {
	case model.KindVolume:
		if volume := v.VolumeByUID(r.UID); volume != nil {
			return []Key{{r.Kind, volume.Meta.Name}}
		}
	case model.KindTarget:
		if target := v.TargetByUID(r.UID); target != nil {
			return []Key{{r.Kind, target.Meta.Name}}
		}
	case model.KindGateway:
		if g := v.GatewayByNumber(r.Gateway.Number); g != nil {
			return []Key{{r.Kind, g.Meta.Name}}
		}
	}
	return nil
}

// touchedBySession is who counts it: its host, and the target that it may be on the wrong portal of.
func (v *View) touchedBySession(s *model.Session) []Key {
	var touched []Key
	if host := v.HostByUID(s.HostUID); host != nil {
		touched = append(touched, Key{model.KindHost, host.Meta.Name})
	}
	if target := v.TargetByIQN(s.TargetIQN); target != nil {
		touched = append(touched, Key{model.KindTarget, target.Meta.Name})
	}
	return touched
}
