package dispatch

import (
	"slices"
	"sync"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// touched has the names of volumes that have changed since a state was built.
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

func (t *touched) drain() map[string]bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	taken := t.volumes
	t.volumes = nil
	return taken
}

// basis has the inputs of a state other than volumes; proof is the state's.
type basis struct {
	layout   uint64
	settings desired.Settings
	proof    desired.Proof
}

func (b basis) same(o *objects.Objects, settings desired.Settings) bool {
	return b.layout == o.Layout() && b.settings.ClusterID == settings.ClusterID && b.settings.SystemID == settings.SystemID && b.settings.OUI == settings.OUI &&
		slices.Equal(b.settings.Keys, settings.Keys) && slices.Equal(b.settings.Roots, settings.Roots)
}

// amend updates the state that was sent for changed volumes; false: it has to be rebuilt.
func (g *gatewayStream) amend(o *objects.Objects, gateway *model.Gateway, settings desired.Settings, volumes map[string]bool,
	version uint64) (sent []*pb.StreamUpdate, amended bool) {
	if g.sent == nil || !g.basis.same(o, settings) {
		return nil, false
	}
	put, amended := desired.Amend(o, gateway, g.runs, g.sent, g.buildCache, volumes)
	if len(put) == 0 {
		return nil, amended
	}
	for _, key := range put {
		g.basis.proof.Put(key, g.sent[key].GetDigest())
	}
	return desired.UpdatesOf(g.sent, put, nil, &pb.StreamUpdate{Version: version, Digest: g.basis.proof.Digest()}), true
}
