package view

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Objects are what is known, by name. Nobody changes an object that is in here: a change puts another in its place.
type Objects struct {
	Volumes      map[string]*model.Volume
	Targets      map[string]*model.Target
	Hosts        map[string]*model.Host
	Snapshots    map[string]*model.Snapshot
	StoragePools map[string]*model.StoragePool
	Gateways     map[string]*model.Gateway
	GatewayPools map[string]*model.GatewayPool
	Fabrics      map[string]*model.Fabric
	// Version up to which all of it is told: the lowest of the watches'.
	Version int64

	volumeNames   map[string]string // of a uid
	poolNames     map[string]string // of a uid
	snapshotNames map[string]string // of a uid
	hostNames     map[string]string // of a uid
	targetNames   map[string]string // of an IQN
	targetUIDs    map[string]string // of a uid
	gatewayNames  map[uint32]string // of a number
	mappedBy      map[string]string // target of a volume

	layout  uint64
	answers answers
	users   poolUsersPointer
}

// NewObjects makes an empty set.
func NewObjects() *Objects {
	return &Objects{
		Volumes: map[string]*model.Volume{}, Targets: map[string]*model.Target{}, Hosts: map[string]*model.Host{},
		Snapshots: map[string]*model.Snapshot{}, StoragePools: map[string]*model.StoragePool{},
		Gateways: map[string]*model.Gateway{}, GatewayPools: map[string]*model.GatewayPool{},
		Fabrics:     map[string]*model.Fabric{},
		volumeNames: map[string]string{}, poolNames: map[string]string{}, snapshotNames: map[string]string{}, hostNames: map[string]string{},
		targetNames: map[string]string{}, targetUIDs: map[string]string{},
		gatewayNames: map[uint32]string{}, mappedBy: map[string]string{},
		answers: answers{of: map[string]answer{}},
	}
}

// VolumeByUID returns nil where there is none.
func (o *Objects) VolumeByUID(uid string) *model.Volume { return o.Volumes[o.volumeNames[uid]] }

// StoragePoolByUID returns nil where there is none.
func (o *Objects) StoragePoolByUID(uid string) *model.StoragePool {
	return o.StoragePools[o.poolNames[uid]]
}

// SnapshotByUID returns nil where there is none.
func (o *Objects) SnapshotByUID(uid string) *model.Snapshot {
	return o.Snapshots[o.snapshotNames[uid]]
}

// HostByUID returns nil where there is none.
func (o *Objects) HostByUID(uid string) *model.Host { return o.Hosts[o.hostNames[uid]] }

// TargetByUID returns nil where there is none.
func (o *Objects) TargetByUID(uid string) *model.Target { return o.Targets[o.targetUIDs[uid]] }

// TargetByIQN returns nil where there is none.
func (o *Objects) TargetByIQN(iqn string) *model.Target { return o.Targets[o.targetNames[iqn]] }

// GatewayByNumber returns nil where there is none.
func (o *Objects) GatewayByNumber(number uint32) *model.Gateway {
	return o.Gateways[o.gatewayNames[number]]
}

// TargetOf returns the target that maps a volume, nil where none does.
func (o *Objects) TargetOf(volume string) *model.Target { return o.Targets[o.mappedBy[volume]] }

// Layout is another number whenever anything is another but who owns volumes, and how they and snapshots are: what is made of
// the layout alone need not be made anew for each step of a failover.
func (o *Objects) Layout() uint64 { return o.layout }

// sameLayout says that an object in the place of another leaves the layout as it is.
func sameLayout(before, object model.Object) bool {
	switch now := object.(type) {
	case *model.Snapshot:
		return true
	case *model.Volume:
		was, known := before.(*model.Volume)
		return known && was.Meta.UID == now.Meta.UID && was.Spec.Pool == now.Spec.Pool &&
			(was.Status.CapacityBytes > 0) == (now.Status.CapacityBytes > 0)
	}
	return false
}

// Put takes up an object in its newest state.
func (o *Objects) Put(object model.Object) {
	layout := o.layout
	if !sameLayout(o.Get(object.Kind(), object.Metadata().Name), object) {
		layout++
	}
	o.Forget(object.Kind(), object.Metadata().Name)
	o.layout = layout
	name := object.Metadata().Name
	switch object := object.(type) {
	case *model.Volume:
		o.Volumes[name], o.volumeNames[object.Meta.UID] = object, name
	case *model.Target:
		o.Targets[name], o.targetNames[object.Spec.IQN], o.targetUIDs[object.Meta.UID] = object, name, name
		for _, lun := range object.Spec.Luns {
			o.mappedBy[lun.Volume] = name
		}
	case *model.Host:
		o.Hosts[name], o.hostNames[object.Meta.UID] = object, name
	case *model.Snapshot:
		o.Snapshots[name], o.snapshotNames[object.Meta.UID] = object, name
	case *model.StoragePool:
		o.StoragePools[name], o.poolNames[object.Meta.UID] = object, name
	case *model.Gateway:
		o.Gateways[name] = object
		if object.Status.Number != 0 {
			o.gatewayNames[object.Status.Number] = name
		}
	case *model.GatewayPool:
		o.GatewayPools[name] = object
	case *model.Fabric:
		o.Fabrics[name] = object
	}
}

// Forget drops an object.
func (o *Objects) Forget(kind model.Kind, name string) {
	o.layout++
	switch kind {
	case model.KindVolume:
		if old := o.Volumes[name]; old != nil {
			forgetName(o.volumeNames, old.Meta.UID, name)
		}
		delete(o.Volumes, name)
	case model.KindTarget:
		if old := o.Targets[name]; old != nil {
			forgetName(o.targetNames, old.Spec.IQN, name)
			forgetName(o.targetUIDs, old.Meta.UID, name)
			for _, lun := range old.Spec.Luns {
				forgetName(o.mappedBy, lun.Volume, name)
			}
		}
		delete(o.Targets, name)
		o.answers.forget(name)
	case model.KindHost:
		if old := o.Hosts[name]; old != nil {
			forgetName(o.hostNames, old.Meta.UID, name)
		}
		delete(o.Hosts, name)
	case model.KindSnapshot:
		if old := o.Snapshots[name]; old != nil {
			forgetName(o.snapshotNames, old.Meta.UID, name)
		}
		delete(o.Snapshots, name)
	case model.KindStoragePool:
		if old := o.StoragePools[name]; old != nil {
			forgetName(o.poolNames, old.Meta.UID, name)
		}
		delete(o.StoragePools, name)
	case model.KindGateway:
		if old := o.Gateways[name]; old != nil {
			forgetName(o.gatewayNames, old.Status.Number, name)
		}
		delete(o.Gateways, name)
	case model.KindGatewayPool:
		delete(o.GatewayPools, name)
	case model.KindFabric:
		delete(o.Fabrics, name)
	}
}

// forgetName drops an entry of an index, unless another object has it by now.
func forgetName[K comparable](index map[K]string, key K, name string) {
	if index[key] == name {
		delete(index, key)
	}
}

// Reset drops all objects of a kind.
func (o *Objects) Reset(kind model.Kind) {
	for _, name := range o.names(kind) {
		o.Forget(kind, name)
	}
}

func (o *Objects) names(kind model.Kind) []string {
	switch kind {
	case model.KindVolume:
		return keys(o.Volumes)
	case model.KindTarget:
		return keys(o.Targets)
	case model.KindHost:
		return keys(o.Hosts)
	case model.KindSnapshot:
		return keys(o.Snapshots)
	case model.KindStoragePool:
		return keys(o.StoragePools)
	case model.KindGateway:
		return keys(o.Gateways)
	case model.KindGatewayPool:
		return keys(o.GatewayPools)
	case model.KindFabric:
		return keys(o.Fabrics)
	}
	return nil
}

func keys[T any](all map[string]T) []string { return slices.Collect(maps.Keys(all)) }

// Get returns an object of a kind, a plain nil where there is none of that name.
func (o *Objects) Get(kind model.Kind, name string) model.Object {
	switch kind {
	case model.KindVolume:
		return find(o.Volumes, name)
	case model.KindTarget:
		return find(o.Targets, name)
	case model.KindHost:
		return find(o.Hosts, name)
	case model.KindSnapshot:
		return find(o.Snapshots, name)
	case model.KindStoragePool:
		return find(o.StoragePools, name)
	case model.KindGateway:
		return find(o.Gateways, name)
	case model.KindGatewayPool:
		return find(o.GatewayPools, name)
	case model.KindFabric:
		return find(o.Fabrics, name)
	}
	return nil
}

// find returns a plain nil where there is nothing, not an interface around one.
func find[T model.Object](held map[string]T, name string) model.Object {
	if object, found := held[name]; found {
		return object
	}
	return nil
}
