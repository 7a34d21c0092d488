package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
)

// keyCheck is the interval at which a replica reads the forwarding keys. It is much shorter than their overlap.
const keyCheck = 5 * time.Second

// hub wakes the streams whose gateway a change may concern.
type hub struct {
	store *store.Store
	view  *view.Cache
	log   *slog.Logger

	mutex   sync.Mutex
	streams map[*gatewayStream]bool
	// keys are shared by all gateways; the keys of pairs are derived from roots.
	keys, roots []model.ForwardingKey
}

// run wakes streams for changes until the context ends.
func (h *hub) run(ctx context.Context) error {
	defer h.view.Subscribe(h.changed)()
	ticker := time.NewTicker(keyCheck)
	defer ticker.Stop()
	for {
		if err := h.refreshKeys(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("forwarding keys could not be read or rotated", "problem", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// refreshKeys reads the keys, rotates the ones that are due, and sends changes to the gateways.
func (h *hub) refreshKeys(ctx context.Context) error {
	keys, err := h.store.RotateForwardingKeys(ctx)
	if err != nil {
		return err
	}
	roots, err := h.store.RotatePairRoots(ctx)
	if err != nil {
		return err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !slices.Equal(h.keys, keys) || !slices.Equal(h.roots, roots) {
		h.keys, h.roots = keys, roots
		for stream := range h.streams {
			stream.triggerBuild()
		}
	}
	return nil
}

func (h *hub) forwardingKeys() (keys, roots []model.ForwardingKey) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.keys, h.roots
}

func (h *hub) add(stream *gatewayStream) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.streams[stream] = true
}

func (h *hub) remove(stream *gatewayStream) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.streams, stream)
}

// changed is called under the view's lock. Volumes are many and change often: only the gateways that a volume's target and
// ownership name are woken. Any other change wakes all.
func (h *hub) changed(change view.Change) {
	numbers, every := affectedGateways(change)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for stream := range h.streams {
		if every || stream.exports(change) || slices.Contains(numbers, stream.number) {
			if change.Kind == model.KindVolume {
				stream.touched.add(change.Name)
			}
			stream.triggerBuild()
		}
	}
}

// mapsOthers reports whether a target maps other volumes than before, or belongs to another gateway pool. Then other gateways may
// receive the keys of pools (Objects.Serves).
func mapsOthers(before, after model.Object) bool {
	was, _ := before.(*model.Target)
	now, _ := after.(*model.Target)
	if was == nil || now == nil {
		return true
	}
	return was.Spec.GatewayPool != now.Spec.GatewayPool || was.Meta.Deleting() != now.Meta.Deleting() ||
		!slices.Equal(was.Spec.Luns, now.Spec.Luns)
}

// affectedGateways returns the numbers of the gateways that a change may concern, or that it may concern every gateway.
func affectedGateways(change view.Change) (numbers []uint32, every bool) {
	if of, known := concernedByKind[change.Kind]; known {
		return of(change)
	}
	return nil, true
}

// concernedByKind has the kinds whose changes do not concern every gateway.
var concernedByKind = map[model.Kind]func(view.Change) ([]uint32, bool){
	model.KindVolume: func(change view.Change) ([]uint32, bool) {
		return gatewaysOf(change, func(v *model.Volume) []uint32 {
			return []uint32{v.Status.Ownership.Owner.Number, v.Status.Ownership.Next.Number}
		}), false
	},
	model.KindTarget: func(change view.Change) ([]uint32, bool) {
		return gatewaysOf(change, func(t *model.Target) []uint32 { return t.Status.PathSet }), mapsOthers(change.Before, change.After)
	},
	model.KindSnapshot: func(view.Change) ([]uint32, bool) { return nil, false },
}

// gatewaysOf returns the gateways that an object named before the change, and those that it names after it.
func gatewaysOf[T interface {
	comparable
	model.Object
}](change view.Change, named func(T) []uint32) (numbers []uint32) {
	var none T
	for _, object := range []model.Object{change.Before, change.After} {
		if present, ok := object.(T); ok && present != none {
			numbers = append(numbers, named(present)...)
		}
	}
	return numbers
}
