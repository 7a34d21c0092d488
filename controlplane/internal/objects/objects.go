package objects

import (
	"sluice.dev/sluice/controlplane/internal/model"
)

// Objects has the known objects, by name. Objects in it are never modified, only replaced.
type Objects struct {
	Volumes      map[string]*model.Volume
	Targets      map[string]*model.Target
	Hosts        map[string]*model.Host
	Snapshots    map[string]*model.Snapshot
	StoragePools map[string]*model.StoragePool
	Gateways     map[string]*model.Gateway
	GatewayPools map[string]*model.GatewayPool
	Fabrics      map[string]*model.Fabric
	// Version of the store up to which all changes are included: the lowest of the watches' versions.
	Version int64

	volumeNames    map[string]string // of a uid
	poolNames      map[string]string // of a uid
	snapshotNames  map[string]string // of a uid
	hostNames      map[string]string // of a uid
	initiatorHosts map[string]string // of an initiator name
	targetNames    map[string]string // of an IQN
	targetUIDs     map[string]string // of a uid
	gatewayNames   map[uint32]string // of a number
	mappedBy       map[string]string // target of a volume

	tables  map[model.Kind]table
	layout  uint64
	answers answers
	users   poolUsersPointer
}

// New returns an empty set.
func New() *Objects {
	o := &Objects{
		Volumes: map[string]*model.Volume{}, Targets: map[string]*model.Target{}, Hosts: map[string]*model.Host{},
		Snapshots: map[string]*model.Snapshot{}, StoragePools: map[string]*model.StoragePool{},
		Gateways: map[string]*model.Gateway{}, GatewayPools: map[string]*model.GatewayPool{},
		Fabrics:     map[string]*model.Fabric{},
		volumeNames: map[string]string{}, poolNames: map[string]string{}, snapshotNames: map[string]string{}, hostNames: map[string]string{}, initiatorHosts: map[string]string{},
		targetNames: map[string]string{}, targetUIDs: map[string]string{},
		gatewayNames: map[uint32]string{}, mappedBy: map[string]string{},
		answers: answers{of: map[string]answer{}},
	}
	o.tables = o.newTables()
	return o
}

// VolumeByUID returns nil if there is none.
func (o *Objects) VolumeByUID(uid string) *model.Volume { return o.Volumes[o.volumeNames[uid]] }

// StoragePoolByUID returns nil if there is none.
func (o *Objects) StoragePoolByUID(uid string) *model.StoragePool {
	return o.StoragePools[o.poolNames[uid]]
}

// SnapshotByUID returns nil if there is none.
func (o *Objects) SnapshotByUID(uid string) *model.Snapshot {
	return o.Snapshots[o.snapshotNames[uid]]
}

// HostByUID returns nil if there is none.
func (o *Objects) HostByUID(uid string) *model.Host { return o.Hosts[o.hostNames[uid]] }

// HostByInitiator returns nil if no host has that initiator name.
func (o *Objects) HostByInitiator(initiator string) *model.Host {
	return o.Hosts[o.initiatorHosts[initiator]]
}

// TargetByUID returns nil if there is none.
func (o *Objects) TargetByUID(uid string) *model.Target { return o.Targets[o.targetUIDs[uid]] }

// TargetByIQN returns nil if there is none.
func (o *Objects) TargetByIQN(iqn string) *model.Target { return o.Targets[o.targetNames[iqn]] }

// GatewayByNumber returns nil if there is none.
func (o *Objects) GatewayByNumber(number uint32) *model.Gateway {
	return o.Gateways[o.gatewayNames[number]]
}

// GatewayName returns the name of a gateway; "" for 0, and for a gateway that was deleted.
func (o *Objects) GatewayName(number uint32) string { return o.gatewayNames[number] }

// TargetOf returns the target that maps a volume, nil where none does.
func (o *Objects) TargetOf(volume string) *model.Target { return o.Targets[o.mappedBy[volume]] }

// Layout returns a number that changes with every object, except for owners and conditions of volumes and snapshots. Results that
// depend on the layout alone are not computed again for each step of a failover.
func (o *Objects) Layout() uint64 { return o.layout }

// sameLayout reports whether replacing an object leaves the layout unchanged.
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

// Put adds an object, or replaces it by its newest state.
func (o *Objects) Put(object model.Object) {
	layout := o.layout
	if !sameLayout(o.Get(object.Kind(), object.Metadata().Name), object) {
		layout++
	}
	o.Forget(object.Kind(), object.Metadata().Name)
	o.layout = layout
	o.tables[object.Kind()].put(object)
}

// Forget removes an object.
func (o *Objects) Forget(kind model.Kind, name string) {
	o.layout++
	o.tables[kind].forget(name)
}

// Reset removes all objects of a kind.
func (o *Objects) Reset(kind model.Kind) {
	for _, name := range o.Names(kind) {
		o.Forget(kind, name)
	}
}

// Names returns the names of all objects of a kind, in no order.
func (o *Objects) Names(kind model.Kind) []string { return o.tables[kind].names() }

// Get returns an object of a kind; a plain nil if there is none of that name.
func (o *Objects) Get(kind model.Kind, name string) model.Object { return o.tables[kind].get(name) }
