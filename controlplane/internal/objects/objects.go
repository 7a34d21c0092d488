package objects

import (
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

	tables  map[model.Kind]table
	layout  uint64
	answers answers
	users   poolUsersPointer
}

// New makes an empty set.
func New() *Objects {
	o := &Objects{
		Volumes: map[string]*model.Volume{}, Targets: map[string]*model.Target{}, Hosts: map[string]*model.Host{},
		Snapshots: map[string]*model.Snapshot{}, StoragePools: map[string]*model.StoragePool{},
		Gateways: map[string]*model.Gateway{}, GatewayPools: map[string]*model.GatewayPool{},
		Fabrics:     map[string]*model.Fabric{},
		volumeNames: map[string]string{}, poolNames: map[string]string{}, snapshotNames: map[string]string{}, hostNames: map[string]string{},
		targetNames: map[string]string{}, targetUIDs: map[string]string{},
		gatewayNames: map[uint32]string{}, mappedBy: map[string]string{},
		answers: answers{of: map[string]answer{}},
	}
	o.tables = o.newTables()
	return o
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

// GatewayName returns the name of a gateway; "" for 0, and for a gateway that was deleted.
func (o *Objects) GatewayName(number uint32) string { return o.gatewayNames[number] }

// TargetOf returns the target that maps a volume, nil where none does.
func (o *Objects) TargetOf(volume string) *model.Target { return o.Targets[o.mappedBy[volume]] }

// Layout is a number that changes with every object, except for owners and conditions of volumes and snapshots. What depends on the layout
// alone is not computed again for each step of a failover.
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
	o.tables[object.Kind()].put(object)
}

// Forget drops an object.
func (o *Objects) Forget(kind model.Kind, name string) {
	o.layout++
	o.tables[kind].forget(name)
}

// Reset drops all objects of a kind.
func (o *Objects) Reset(kind model.Kind) {
	for _, name := range o.Names(kind) {
		o.Forget(kind, name)
	}
}

// Names returns the names of all objects of a kind, in no order.
func (o *Objects) Names(kind model.Kind) []string { return o.tables[kind].names() }

// Get returns an object of a kind, a plain nil where there is none of that name.
func (o *Objects) Get(kind model.Kind, name string) model.Object { return o.tables[kind].get(name) }
