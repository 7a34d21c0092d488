package dispatch

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const iqn = "iqn.2026-11.dev.sluice:db"

// cluster has gateways gw-1 … gw-3 on one fabric; target db with LUN 0, volume orders, is exported by the first two.
func cluster() *view.Objects {
	o := view.NewObjects()
	o.Put(&model.Fabric{Meta: model.Meta{Name: "red"}})
	for i := uint32(1); i <= 3; i++ {
		o.Put(&model.Gateway{Meta: model.Meta{Name: fmt.Sprintf("gw-%d", i)},
			Spec: model.GatewaySpec{GatewayPool: "default", Node: "node-1", Weight: 100,
				ForwardingAddress: fmt.Sprintf("10.0.9.%d:3261", i),
				Portals: []model.Portal{{Listen: fmt.Sprintf("10.0.0.%d:3260", i),
					Advertised: fmt.Sprintf("192.0.2.%d:3260", i), Fabric: "red"}}},
			Status: model.GatewayStatus{Number: i, Incarnation: "i", Health: model.GatewayReady,
				PortalGroupTags: map[string]uint32{"red": 10 + i}}})
	}
	o.Put(&model.StoragePool{Meta: model.Meta{Name: "nvme", UID: "pool-uid"},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	o.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "host-uid"}, Spec: model.HostSpec{
		Initiators: []string{"iqn.2026-11.example:web"}, MaxSessions: 4,
		Chap: &model.ChapCredentials{Username: "web", Password: model.NewSecret("a secret of web")}}})
	o.Put(volume(model.Ownership{State: model.Owned, Epoch: 3, Order: 9, Owner: ref(1)}))
	o.Put(&model.Target{Meta: model.Meta{Name: "db", UID: "target-uid"},
		Spec: model.TargetSpec{IQN: iqn, GatewayPool: "default", Paths: 2, Hosts: []string{"web"},
			Luns: []model.TargetLun{{ID: 0, Volume: "orders"}}},
		Status: model.TargetStatus{PathSet: []uint32{1, 2}, Ports: []model.TargetPort{
			{Gateway: 2, PortalGroupTag: 12, RelativePortID: 2}, {Gateway: 1, PortalGroupTag: 11, RelativePortID: 1},
			{Gateway: 3, PortalGroupTag: 13, RelativePortID: 3}}}})
	return o
}

func volume(o model.Ownership) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: "orders", UID: "volume-uid"},
		Spec:   model.VolumeSpec{Pool: "nvme", SizeBytes: 2 << 20, BlockSize: 512},
		Status: model.VolumeStatus{Ownership: o, CapacityBytes: 1 << 20}}
}

func ref(number uint32) model.GatewayRef { return model.GatewayRef{Number: number, Incarnation: "i"} }

func of(o *view.Objects, gateway string) desiredState {
	state, _ := desired(o, o.Gateways[gateway], process{incarnation: "i"}, Settings{ClusterID: "c"}, makings{})
	return state
}

func (s desiredState) volume(t *testing.T) *pb.DesiredVolume {
	t.Helper()
	object := s[objectKey{pb.ObjectKind_OBJECT_KIND_VOLUME, "volume-uid"}]
	if object == nil {
		t.Fatal("the gateway is told nothing of the volume")
	}
	return object.GetVolume()
}

func (s desiredState) target() *pb.DesiredTarget {
	return s[objectKey{pb.ObjectKind_OBJECT_KIND_TARGET, iqn}].GetTarget()
}

// R1, R11: what each gateway is told in each state of ownership.
func TestInEveryStateAtMostOneGatewayIsToldToServe(t *testing.T) {
	const (
		forward  = pb.VolumeRole_VOLUME_ROLE_FORWARDER
		own      = pb.VolumeRole_VOLUME_ROLE_OWNER
		release  = pb.VolumeRole_VOLUME_ROLE_RELEASING
		acquire  = pb.VolumeRole_VOLUME_ROLE_ACQUIRING
		waiting  = true
		settled  = false
		nobody   = 0
		firstOne = 1
	)
	type told struct {
		role          pb.VolumeRole
		owner         uint32
		transitioning bool
	}
	for _, c := range []struct {
		ownership     model.Ownership
		first, second told
	}{
		{model.Ownership{State: model.Unowned}, told{forward, nobody, settled}, told{forward, nobody, settled}},
		{model.Ownership{State: model.Orphaned}, told{forward, nobody, settled}, told{forward, nobody, settled}},
		{model.Ownership{State: model.Opening, Owner: ref(1)}, told{own, firstOne, settled}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Owned, Owner: ref(1)}, told{own, firstOne, settled}, told{forward, firstOne, settled}},
		{model.Ownership{State: model.Moving, Owner: ref(1), Next: ref(2)},
			told{release, firstOne, waiting}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Acquiring, Next: ref(2)}, told{forward, nobody, waiting}, told{acquire, nobody, waiting}},
		{model.Ownership{State: model.Acquiring, Owner: ref(1), Next: ref(2)},
			told{own, firstOne, settled}, told{acquire, nobody, waiting}},
		{model.Ownership{State: model.Fencing, Fence: ref(1)}, told{forward, nobody, waiting}, told{forward, nobody, waiting}},
	} {
		o := cluster()
		o.Put(volume(c.ownership))
		for gateway, want := range map[string]told{"gw-1": c.first, "gw-2": c.second} {
			v := of(o, gateway).volume(t)
			if got := (told{v.GetRole(), v.GetOwner(), v.GetTransitioning()}); got != want {
				t.Errorf("%s of %v, %s: %v, want %v", c.ownership.State, c.ownership.Owner, gateway, got, want)
			}
		}
	}
}

// Its owner itself, which the others may be wrong about, serves on.
func TestHostsDoNotWaitForAnOwnerThatIsGoneWhereNobodyCanTakeOver(t *testing.T) {
	o := cluster()
	v := volume(model.Ownership{State: model.Owned, Owner: ref(1)})
	v.Status.Conditions = []model.Condition{{Type: model.ConditionReady, Status: model.ConditionFalse, Reason: model.ReasonOwnerDead}}
	o.Put(v)
	if told := of(o, "gw-2").volume(t); told.GetOwner() != 0 || told.GetTransitioning() {
		t.Errorf("another gateway is told of owner %d, transitioning %v: its hosts wait", told.GetOwner(), told.GetTransitioning())
	}
	if told := of(o, "gw-1").volume(t); told.GetRole() != pb.VolumeRole_VOLUME_ROLE_OWNER {
		t.Errorf("the owner is told %v", told.GetRole())
	}
}

// A process that started anew is another client: what its predecessor owned it does not.
func TestAnotherIncarnationOfTheOwnerIsNotToldToServe(t *testing.T) {
	o := cluster()
	state, _ := desired(o, o.Gateways["gw-1"], process{incarnation: "another"}, Settings{}, makings{})
	if v := state.volume(t); v.GetRole() != pb.VolumeRole_VOLUME_ROLE_FORWARDER {
		t.Errorf("its role is %v", v.GetRole())
	}
}

func TestWhatWasMadeBeforeIsTakenOverOnlyWhereNothingHasChanged(t *testing.T) {
	o := cluster()
	var made makings
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"nothing again", func() {}},
		{"the volume's owner", func() { o.Put(volume(model.Ownership{State: model.Owned, Epoch: 4, Order: 11, Owner: ref(2)})) }},
		{"the pool", func() {
			o.Put(&model.StoragePool{Meta: model.Meta{Name: "nvme", UID: "another-uid"},
				Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
		}},
		{"the host", func() {
			o.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "host-uid"},
				Spec: model.HostSpec{Initiators: []string{"iqn.2026-11.example:another"}}})
		}},
		{"the host's uid", func() {
			o.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "another-host"},
				Spec: model.HostSpec{Initiators: []string{"iqn.2026-11.example:another"}}})
		}},
		{"a portal of another gateway", func() {
			gateway := *o.Gateways["gw-2"]
			gateway.Spec.Portals = []model.Portal{{Listen: "10.0.0.2:3260", Advertised: "192.0.2.99:3260", Fabric: "red"}}
			o.Put(&gateway)
		}},
		{"whether the volume is made", func() {
			unmade := *o.Volumes["orders"]
			unmade.Status.CapacityBytes = 0
			o.Put(&unmade)
		}},
		{"whether the volume is made, again", func() {
			o.Put(volume(model.Ownership{State: model.Owned, Epoch: 5, Order: 12, Owner: ref(1)}))
		}},
		{"the volume's uid", func() {
			another := volume(model.Ownership{State: model.Owned, Epoch: 5, Order: 12, Owner: ref(1)})
			another.Meta.UID = "another-volume"
			o.Put(another)
		}},
		{"the path set", func() {
			target := *o.Targets["db"]
			target.Status.PathSet = []uint32{1, 2, 3}
			o.Put(&target)
		}},
		{"the volume is gone", func() { o.Forget(model.KindVolume, "orders") }},
	} {
		change.do()
		var state desiredState
		state, made = desired(o, o.Gateways["gw-1"], process{incarnation: "i"}, Settings{ClusterID: "c"}, made)
		if fresh := of(o, "gw-1"); !bytes.Equal(state.digest(), fresh.digest()) {
			t.Errorf("after %s has changed: %v, made anew %v", change.what, state, fresh)
		}
	}
	if len(made.volumes) != 0 {
		t.Errorf("still kept: %v", made)
	}
}

// The one that makes the image need not be this gateway, nor the one that owns it.
func TestAGatewayIsConcernedByAVolumeOfItsTargetsBeforeThereIsAnythingToTell(t *testing.T) {
	o := cluster()
	unmade := volume(model.Ownership{})
	unmade.Status.CapacityBytes = 0
	o.Put(unmade)
	state, made := desired(o, o.Gateways["gw-2"], process{incarnation: "i"}, Settings{}, makings{})
	if state[objectKey{pb.ObjectKind_OBJECT_KIND_VOLUME, "volume-uid"}] != nil {
		t.Error("it is told of a volume without an image")
	}
	exported := volumeNames(made.volumes)
	g := &gatewayStream{}
	g.exported.Store(&exported)
	if !g.exports(view.Change{Kind: model.KindVolume, Name: "orders"}) {
		t.Error("it would not hear that the image is made")
	}
	o.Put(volume(model.Ownership{}))
	if again, _ := desired(o, o.Gateways["gw-2"], process{incarnation: "i"}, Settings{}, made); again.volume(t).GetSizeBytes() == 0 {
		t.Error("it is not told of the volume that was made")
	}
}

func TestWhatIsSaidOfSeveralVolumesIsTakenTogetherInItsOrder(t *testing.T) {
	of := func(uid string, order uint64) *pb.ConnectRequest {
		return &pb.ConnectRequest{Message: &pb.ConnectRequest_VolumeObserved{VolumeObserved: &pb.VolumeObserved{Uid: uid, Order: order}}}
	}
	beat := &pb.ConnectRequest{Message: &pb.ConnectRequest_Heartbeat{Heartbeat: &pb.StreamHeartbeat{}}}
	messages := make(chan *pb.ConnectRequest, 10)
	for _, m := range []*pb.ConnectRequest{of("b", 1), of("a", 2), beat, of("c", 1)} {
		messages <- m
	}
	var taken []string
	for message := of("a", 1); message != nil; {
		said, next := together(message, messages)
		text := "beat"
		if message.GetVolumeObserved() != nil {
			text = ""
			for _, o := range said {
				text += fmt.Sprint(o.GetUid(), o.GetOrder(), " ")
			}
		}
		taken = append(taken, text)
		if message = next; message == nil && len(messages) > 0 {
			message = <-messages
		}
	}
	if want := []string{"a1 b1 ", "a2 ", "beat", "c1 "}; !slices.Equal(taken, want) {
		t.Errorf("%q, not %q", taken, want)
	}
}

func TestAGatewayIsToldOfWhatItExportsAndOfNothingElse(t *testing.T) {
	o := cluster()
	if target := of(o, "gw-3").target(); target != nil {
		t.Errorf("gw-3 is not in the path set and is told %v", target)
	}
	target := of(o, "gw-2").target()
	if len(target.GetPorts()) != 2 || target.GetPorts()[0].GetRelativeTargetPortId() != 1 {
		t.Errorf("ports: %v, want those of the path set, in order (R11)", target.GetPorts())
	}
	access := target.GetAccess()
	portals := []string{"192.0.2.1:3260,11", "192.0.2.2:3260,12"}
	if len(access) != 1 || !slices.Equal(slices.Sorted(slices.Values(access[0].GetPortals())), portals) {
		t.Errorf("access: %v, want web with the portals as they are advertised", access)
	}
	peers := of(o, "gw-2")[objectKey{pb.ObjectKind_OBJECT_KIND_PEER, "1"}].GetPeer()
	if peers.GetForwardingAddress() != "10.0.9.1:3261" || peers.GetFenced() {
		t.Errorf("peer 1: %v", peers)
	}
}

// R11: a LUN that was never made would be a LUN of no size.
func TestAVolumeThatIsNotMadeYetIsShownToNobody(t *testing.T) {
	o := cluster()
	fresh := volume(model.Ownership{State: model.Unowned})
	fresh.Status.CapacityBytes = 0
	o.Put(fresh)
	state := of(o, "gw-1")
	if luns := state.target().GetLuns(); len(luns) != 0 {
		t.Errorf("LUNs: %v", luns)
	}
	if state[objectKey{pb.ObjectKind_OBJECT_KIND_VOLUME, "volume-uid"}] != nil {
		t.Error("the volume is told")
	}
}

// R9: who is on a gateway that leaves stays until it is asked to go; who comes is sent to one that stays.
func TestAGatewayThatLeavesExportsButIsShownToNobody(t *testing.T) {
	o := cluster()
	leaves := *o.Targets["db"]
	leaves.Status.Leaving = map[uint32]time.Time{1: time.Unix(0, 0)}
	o.Put(&leaves)
	for name, redirect := range map[string]bool{"gw-1": true, "gw-2": false} {
		target := of(o, name).target()
		if len(target.GetAccess()) != 1 || len(target.GetPorts()) != 2 {
			t.Fatalf("%s: %v", name, target)
		}
		access := target.GetAccess()[0]
		if !slices.Equal(access.GetPortals(), []string{"192.0.2.2:3260,12"}) || access.GetRedirect() != redirect {
			t.Errorf("%s shows %v and redirects: %v", name, access.GetPortals(), access.GetRedirect())
		}
	}
	all := leaves
	all.Status.Leaving = map[uint32]time.Time{1: time.Unix(0, 0), 2: time.Unix(0, 0)}
	o.Put(&all)
	if shown := of(o, "gw-1").target().GetAccess()[0].GetPortals(); len(shown) != 2 {
		t.Errorf("shown are %v where all leave: no way would be left", shown)
	}
}

func TestAGatewayThatNobodyOfItsPathSetIsLeftToFindGoneIsLookedForByAnother(t *testing.T) {
	o := cluster()
	key := objectKey{pb.ObjectKind_OBJECT_KIND_PEER, "1"}
	if of(o, "gw-3")[key] != nil {
		t.Error("gw-3 shares no path set with gw-1, which has a stream, and knows it")
	}
	for _, name := range []string{"gw-1", "gw-2"} {
		lost := *o.Gateways[name]
		lost.Status.Health = model.GatewayDisconnected
		o.Put(&lost)
	}
	if peer := of(o, "gw-3")[key].GetPeer(); peer.GetForwardingAddress() != "10.0.9.1:3261" || peer.GetFenced() {
		t.Errorf("gw-3 is told of gw-1: %v", peer)
	}
}

func TestADeadPeerIsToldAsFenced(t *testing.T) {
	o := cluster()
	dead := *o.Gateways["gw-1"]
	dead.Status.Health = model.GatewayDead
	o.Put(&dead)
	if !of(o, "gw-2")[objectKey{pb.ObjectKind_OBJECT_KIND_PEER, "1"}].GetPeer().GetFenced() {
		t.Error("whatever it still sends would be taken")
	}
}

func TestTheOwnerHearsOfItsVolumeAlsoWhenNoTargetShowsItAnyMore(t *testing.T) {
	o := cluster()
	o.Forget(model.KindTarget, "db")
	o.Put(volume(model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1)}))
	if role := of(o, "gw-1").volume(t).GetRole(); role != pb.VolumeRole_VOLUME_ROLE_RELEASING {
		t.Errorf("its role is %v: it would never let go", role)
	}
}
