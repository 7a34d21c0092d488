package desired

import (
	"bytes"
	"maps"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// Amend updates the volumes with these names in a state whose other objects are current, and returns the keys of the objects that differ
// now. A failover changes hundreds of a thousand volumes, a few at a time; Build would repeat all of them each time. It returns false and
// changes nothing if a volume may have been added or removed: then the caller has to Build the state.
func Amend(o *objects.Objects, gateway *model.Gateway, runs Process, state State, made Cache, volumes map[string]bool,
) ([]Key, bool) {
	m := &maker{objects: o, gateway: gateway, state: State{}, before: made, rbd: runs.RBD,
		made: Cache{volumes: make(map[string]volumeMade, len(volumes))},
		self: model.GatewayRef{Number: gateway.Status.Number, Incarnation: runs.Incarnation}}
	for name := range volumes {
		volume := o.Volumes[name]
		if volume == nil {
			return nil, false
		}
		// Its pool, and whether it has an image, belong to the layout, which is unchanged.
		if !made.volumes[volume.Meta.UID].exported {
			return nil, false
		}
		m.volume(volume, true)
	}
	var put []Key
	for key, object := range m.state {
		if !bytes.Equal(state[key].GetDigest(), object.GetDigest()) {
			put = append(put, key)
		}
	}
	maps.Copy(state, m.state)
	maps.Copy(made.volumes, m.made.volumes)
	return sorted(put), true
}
