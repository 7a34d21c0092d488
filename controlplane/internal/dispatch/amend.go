package dispatch

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// touched are the names of volumes that have changed since a state was made.
type touched struct {
	mutex   sync.Mutex
	volumes map[string]bool
}

func (t *touched) add(volume string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.volumes == nil {
		t.volumes = map[string]bool{}
	}
	t.volumes[volume] = true
}

func (t *touched) take() map[string]bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	taken := t.volumes
	t.volumes = nil
	return taken
}

// basis is what a state was made of besides volumes; proof is the state's.
type basis struct {
	layout   uint64
	settings Settings
	proof    proof
}

func (b basis) same(o *view.Objects, settings Settings) bool {
	return b.layout == o.Layout() && b.settings.ClusterID == settings.ClusterID && b.settings.SystemID == settings.SystemID && b.settings.OUI == settings.OUI &&
		slices.Equal(b.settings.Keys, settings.Keys) && slices.Equal(b.settings.Roots, settings.Roots)
}

// amend takes the volumes that have changed up into a state that is right in all else, and returns what is another now: a failover
// changes hundreds of a thousand, a few at a time, and would wait for all of them to be made anew each time. False, and nothing is
// changed: a volume may have come or gone, and the state has to be made anew.
func amend(o *view.Objects, gateway *model.Gateway, runs process, state desiredState, made makings, volumes map[string]bool,
) ([]objectKey, bool) {
	m := &maker{objects: o, gateway: gateway, state: desiredState{}, before: made, rbd: runs.rbd,
		made: makings{volumes: make(map[string]volumeMade, len(volumes))},
		self: model.GatewayRef{Number: gateway.Status.Number, Incarnation: runs.incarnation}}
	for name := range volumes {
		volume := o.Volumes[name]
		if volume == nil {
			return nil, false
		}
		// Which pool it is in, and whether it is made, are of the layout: they are as they were.
		if !made.volumes[volume.Meta.UID].exported {
			return nil, false
		}
		m.volume(volume, true)
	}
	var put []objectKey
	for key, object := range m.state {
		if !bytes.Equal(state[key].GetDigest(), object.GetDigest()) {
			put = append(put, key)
		}
	}
	maps.Copy(state, m.state)
	maps.Copy(made.volumes, m.made.volumes)
	return sorted(put), true
}

// amend does so with the state that was sent; nil: it has to be made anew.
func (g *gatewayStream) amend(o *view.Objects, gateway *model.Gateway, settings Settings, volumes map[string]bool,
	version uint64) (sent []*pb.StreamUpdate, amended bool) {
	if g.sent == nil || !g.basis.same(o, settings) {
		return nil, false
	}
	put, amended := amend(o, gateway, g.runs, g.sent, g.made, volumes)
	if len(put) == 0 {
		return nil, amended
	}
	for _, key := range put {
		g.basis.proof.put(key, g.sent[key].GetDigest())
	}
	return updatesOf(g.sent, put, nil, &pb.StreamUpdate{Version: version, Digest: g.basis.proof.digest()}), true
}
