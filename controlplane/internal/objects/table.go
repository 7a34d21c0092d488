package objects

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// newTables returns a table for each kind: its objects, and the indexes other than the name.
func (o *Objects) newTables() map[model.Kind]table {
	targets := tableOf(o.Targets, by(o.targetNames, iqnOf), by(o.targetUIDs, uidOf[*model.Target]), by(o.mappedBy, volumesOf))
	targets.forgotten = o.answers.forget
	return map[model.Kind]table{
		model.KindVolume:      tableOf(o.Volumes, by(o.volumeNames, uidOf[*model.Volume])),
		model.KindTarget:      targets,
		model.KindHost:        tableOf(o.Hosts, by(o.hostNames, uidOf[*model.Host]), by(o.initiatorHosts, initiatorsOf)),
		model.KindSnapshot:    tableOf(o.Snapshots, by(o.snapshotNames, uidOf[*model.Snapshot])),
		model.KindStoragePool: tableOf(o.StoragePools, by(o.poolNames, uidOf[*model.StoragePool])),
		model.KindGateway:     tableOf(o.Gateways, by(o.gatewayNames, numberOf)),
		model.KindGatewayPool: tableOf(o.GatewayPools),
		model.KindFabric:      tableOf(o.Fabrics),
	}
}

func uidOf[T model.Object](object T) []string { return []string{object.Metadata().UID} }

func iqnOf(target *model.Target) []string { return []string{target.Spec.IQN} }

func initiatorsOf(host *model.Host) []string { return host.Spec.Initiators }

func volumesOf(target *model.Target) []string {
	volumes := make([]string, len(target.Spec.Luns))
	for i, lun := range target.Spec.Luns {
		volumes[i] = lun.Volume
	}
	return volumes
}

// numberOf returns nothing for a gateway without a number.
func numberOf(gateway *model.Gateway) []uint32 {
	if gateway.Status.Number == 0 {
		return nil
	}
	return []uint32{gateway.Status.Number}
}

// table has the objects of one kind, of any type.
type table interface {
	put(model.Object)
	forget(name string)
	names() []string
	get(name string) model.Object
}

// typed is the table of a kind whose objects are of type T.
type typed[T model.Object] struct {
	held    map[string]T
	indexes []index[T]
	// forgotten runs after an object of that name was removed, even if there was none.
	forgotten func(name string)
}

func tableOf[T model.Object](held map[string]T, indexes ...index[T]) *typed[T] {
	return &typed[T]{held, indexes, func(string) {}}
}

func (t *typed[T]) put(object model.Object) {
	name, present := object.Metadata().Name, object.(T)
	t.held[name] = present
	for _, i := range t.indexes {
		i.add(present, name)
	}
}

func (t *typed[T]) forget(name string) {
	if old, known := t.held[name]; known {
		for _, i := range t.indexes {
			i.remove(old, name)
		}
	}
	delete(t.held, name)
	t.forgotten(name)
}

func (t *typed[T]) names() []string { return slices.Collect(maps.Keys(t.held)) }

// get returns a plain nil if there is none, not an interface with a nil pointer.
func (t *typed[T]) get(name string) model.Object {
	if object, found := t.held[name]; found {
		return object
	}
	return nil
}

// index finds the names of objects by other keys.
type index[T model.Object] struct {
	add, remove func(object T, name string)
}

// by returns an index by the keys of an object. It removes a key only if no other object has it by then.
func by[K comparable, T model.Object](names map[K]string, keys func(T) []K) index[T] {
	return index[T]{
		add: func(object T, name string) {
			for _, key := range keys(object) {
				names[key] = name
			}
		},
		remove: func(object T, name string) {
			for _, key := range keys(object) {
				if names[key] == name {
					delete(names, key)
				}
			}
		},
	}
}
