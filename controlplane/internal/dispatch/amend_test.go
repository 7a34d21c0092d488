package dispatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// listener is gateway gw-1 at the end of its stream, with the state that it received.
type listener struct {
	t       *testing.T
	objects *objects.Objects
	hub     *hub
	stream  *gatewayStream
	held    desired.State
}

func listen(t *testing.T) *listener {
	stream := &gatewayStream{name: "gw-1", number: 1, runs: desired.Process{Incarnation: "i"}, buildRequested: make(chan struct{}, 1)}
	l := &listener{t: t, objects: desiredtest.Cluster(), held: desired.State{}, stream: stream,
		hub: &hub{streams: map[*gatewayStream]bool{stream: true}}}
	target := *l.objects.Targets["db"]
	for i := range 20 {
		l.put(l.volume(i, model.Ownership{State: model.Owned, Epoch: 1, Owner: desiredtest.Ref(uint32(i%3 + 1))}))
		if i < 16 {
			target.Spec.Luns = append(target.Spec.Luns, model.TargetLun{ID: int32(i + 1), Volume: fmt.Sprintf("v%d", i)})
		}
	}
	l.put(&target)
	l.hear(desired.Settings{ClusterID: "c"})
	return l
}

func (l *listener) volume(i int, o model.Ownership) *model.Volume {
	v := desiredtest.Volume(o)
	v.Meta.Name, v.Meta.UID = fmt.Sprintf("v%d", i), fmt.Sprintf("uid-%d", i)
	return v
}

// put changes an object as the view does.
func (l *listener) put(object model.Object) {
	kind, name := object.Kind(), object.Metadata().Name
	before := l.objects.Get(kind, name)
	l.objects.Put(object)
	l.hub.changed(view.Change{Kind: kind, Name: name, Before: before, After: object})
}

func (l *listener) forget(kind model.Kind, name string) {
	before := l.objects.Get(kind, name)
	l.objects.Forget(kind, name)
	l.hub.changed(view.Change{Kind: kind, Name: name, Before: before})
}

// hear sends the gateway the changes, if the stream was woken, and reports whether the state was amended rather than rebuilt.
func (l *listener) hear(settings desired.Settings) (updates []*pb.StreamUpdate, amended bool) {
	l.t.Helper()
	select {
	case <-l.stream.buildRequested:
	default:
		return nil, false
	}
	gateway := l.objects.Gateways["gw-1"]
	updates, amended = l.stream.amend(l.objects, gateway, settings, l.stream.touched.drain(), 7)
	if !amended {
		updates = l.stream.renew(l.objects, gateway, settings, 7)
	}
	for _, update := range updates {
		desiredtest.Apply(l.held, update)
	}
	fresh, _ := desired.Build(l.objects, gateway, l.stream.runs, settings, desired.Cache{})
	if !bytes.Equal(l.held.Digest(), fresh.Digest()) {
		l.t.Fatalf("it holds %v, built from the start it is %v", l.held, fresh)
	}
	if len(updates) > 0 && !bytes.Equal(updates[len(updates)-1].GetDigest(), fresh.Digest()) {
		l.t.Fatal("the digest that was sent differs from the digest of a rebuilt state")
	}
	return updates, amended
}

func TestAFailoverStepIsSentWithoutACompleteRebuild(t *testing.T) {
	l := listen(t)
	for i, step := range []struct {
		ownership model.Ownership
		updates   int
	}{
		{model.Ownership{State: model.Acquiring, Epoch: 1, Order: 2, Owner: desiredtest.Ref(2), Next: desiredtest.Ref(1)}, 2},
		{model.Ownership{State: model.Opening, Epoch: 2, Order: 3, Owner: desiredtest.Ref(1)}, 2},
		{model.Ownership{State: model.Owned, Epoch: 2, Order: 3, Owner: desiredtest.Ref(1)}, 0}, // as it reported itself
	} {
		l.put(l.volume(1, step.ownership))
		l.put(l.volume(4, step.ownership))
		updates, amended := l.hear(desired.Settings{ClusterID: "c"})
		if !amended {
			t.Errorf("step %d: all was built from the start", i)
		}
		put := 0
		for _, update := range updates {
			put += len(update.GetPut())
		}
		if put != step.updates || (len(updates) > 0) != (step.updates > 0) {
			t.Errorf("step %d: %v is sent", i, updates)
		}
	}
}

func TestAnAmendedStateEqualsARebuiltOne(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := listen(t)
		settings := desired.Settings{ClusterID: "c"}
		amendments := 0
		for range 200 {
			for range random.IntN(4) {
				change(l, random)
			}
			if random.IntN(20) == 0 {
				settings.Keys = []model.ForwardingKey{{ID: fmt.Sprint(random.Int()), Key: model.NewSecret("k")}}
				l.stream.triggerBuild() // as the hub does
			}
			if _, amended := l.hear(settings); amended {
				amendments++
			}
		}
		if amendments == 0 {
			t.Errorf("seed %d: all was built from the start each time", seed)
		}
	}
}

func change(l *listener, random *rand.Rand) {
	i := random.IntN(22)
	states := []model.OwnershipState{model.Unowned, model.Acquiring, model.Opening, model.Owned, model.Moving, model.Fencing,
		model.Orphaned}
	ownership := model.Ownership{State: states[random.IntN(len(states))], Epoch: random.Uint64N(5), Order: random.Uint64N(9),
		Owner: desiredtest.Ref(random.Uint32N(4)), Next: desiredtest.Ref(random.Uint32N(4))}
	switch v := l.volume(i, ownership); random.IntN(30) {
	case 0:
		v.Status.CapacityBytes = 0
		l.put(v)
	case 1:
		v.Meta.UID += "-again"
		l.put(v)
	case 2:
		v.Spec.Pool = "another"
		l.put(v)
	case 3:
		l.forget(model.KindVolume, v.Meta.Name)
	case 4:
		target := *l.objects.Targets["db"]
		target.Status.PathSet = [][]uint32{{1, 2}, {1, 3}, {2, 3}}[random.IntN(3)]
		l.put(&target)
	case 5:
		l.put(&model.StoragePool{Meta: model.Meta{Name: "another", UID: fmt.Sprint("pool-", random.IntN(3))},
			Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	case 6:
		v.Status.CapacityBytes <<= 1
		l.put(v)
	default:
		l.put(v)
	}
}
