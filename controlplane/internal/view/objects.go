package view

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

	volumeNames  map[string]string // of a uid
	gatewayNames map[uint32]string // of a number
	mappedBy     map[string]string // target of a volume
}

// NewObjects makes an empty set.
func NewObjects() *Objects {
	return &Objects{
		Volumes: map[string]*model.Volume{}, Targets: map[string]*model.Target{}, Hosts: map[string]*model.Host{},
		Snapshots: map[string]*model.Snapshot{}, StoragePools: map[string]*model.StoragePool{},
		Gateways: map[string]*model.Gateway{}, GatewayPools: map[string]*model.GatewayPool{},
		Fabrics:     map[string]*model.Fabric{},
		volumeNames: map[string]string{}, gatewayNames: map[uint32]string{}, mappedBy: map[string]string{},
	}
}

// VolumeByUID returns nil where there is none.
func (o *Objects) VolumeByUID(uid string) *model.Volume { return o.Volumes[o.volumeNames[uid]] }

// GatewayByNumber returns nil where there is none.
func (o *Objects) GatewayByNumber(number uint32) *model.Gateway {
	return o.Gateways[o.gatewayNames[number]]
}

// TargetOf returns the target that maps a volume, nil where none does.
func (o *Objects) TargetOf(volume string) *model.Target { return o.Targets[o.mappedBy[volume]] }

// Put takes up an object in its newest state.
func (o *Objects) Put(object model.Object) {
	o.Forget(object.Kind(), object.Metadata().Name)
	name := object.Metadata().Name
	switch object := object.(type) {
	case *model.Volume:
		o.Volumes[name], o.volumeNames[object.Meta.UID] = object, name
	case *model.Target:
		o.Targets[name] = object
		for _, lun := range object.Spec.Luns {
			o.mappedBy[lun.Volume] = name
		}
	case *model.Host:
		o.Hosts[name] = object
	case *model.Snapshot:
		o.Snapshots[name] = object
	case *model.StoragePool:
		o.StoragePools[name] = object
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
	switch kind {
	case model.KindVolume:
		if old := o.Volumes[name]; old != nil {
			delete(o.volumeNames, old.Meta.UID)
		}
		delete(o.Volumes, name)
	case model.KindTarget:
		if old := o.Targets[name]; old != nil {
			for _, lun := range old.Spec.Luns {
				if o.mappedBy[lun.Volume] == name {
					delete(o.mappedBy, lun.Volume)
				}
			}
		}
		delete(o.Targets, name)
	case model.KindHost:
		delete(o.Hosts, name)
	case model.KindSnapshot:
		delete(o.Snapshots, name)
	case model.KindStoragePool:
		delete(o.StoragePools, name)
	case model.KindGateway:
		if old := o.Gateways[name]; old != nil {
			delete(o.gatewayNames, old.Status.Number)
		}
		delete(o.Gateways, name)
	case model.KindGatewayPool:
		delete(o.GatewayPools, name)
	case model.KindFabric:
		delete(o.Fabrics, name)
	}
}
