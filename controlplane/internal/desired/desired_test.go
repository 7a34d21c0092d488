package desired_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func of(o *objects.Objects, gateway string) desired.State {
	state, _ := desired.Build(o, o.Gateways[gateway], desired.Process{Incarnation: "i"}, desired.Settings{ClusterID: "c"}, desired.Cache{})
	return state
}

func volumeIn(t *testing.T, s desired.State) *pb.DesiredVolume {
	t.Helper()
	object := s[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_VOLUME, ID: "volume-uid"}]
	if object == nil {
		t.Fatal("the gateway does not receive the volume")
	}
	return object.GetVolume()
}

func targetIn(s desired.State) *pb.DesiredTarget {
	return s[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_TARGET, ID: desiredtest.IQN}].GetTarget()
}

// R1, R11: the role of each gateway in each state of ownership.
func TestInEveryStateAtMostOneGatewayReceivesTheServingRole(t *testing.T) {
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
		{model.Ownership{State: model.Unowned}, told{forward, nobody, waiting}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Orphaned}, told{forward, nobody, waiting}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Opening, Owner: desiredtest.Ref(1)}, told{own, firstOne, settled}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Owned, Owner: desiredtest.Ref(1)}, told{own, firstOne, settled}, told{forward, firstOne, settled}},
		{model.Ownership{State: model.Moving, Owner: desiredtest.Ref(1), Next: desiredtest.Ref(2)},
			told{release, firstOne, waiting}, told{forward, nobody, waiting}},
		{model.Ownership{State: model.Acquiring, Next: desiredtest.Ref(2)}, told{forward, nobody, waiting}, told{acquire, nobody, waiting}},
		{model.Ownership{State: model.Acquiring, Owner: desiredtest.Ref(1), Next: desiredtest.Ref(2)},
			told{own, firstOne, settled}, told{acquire, nobody, waiting}},
		{model.Ownership{State: model.Fencing, Fence: desiredtest.Ref(1)}, told{forward, nobody, waiting}, told{forward, nobody, waiting}},
	} {
		o := desiredtest.Cluster()
		o.Put(desiredtest.Volume(c.ownership))
		for gateway, want := range map[string]told{"gw-1": c.first, "gw-2": c.second} {
			v := volumeIn(t, of(o, gateway))
			if got := (told{v.GetRole(), v.GetOwner(), v.GetTransitioning()}); got != want {
				t.Errorf("%s of %v, %s: %v, want %v", c.ownership.State, c.ownership.Owner, gateway, got, want)
			}
		}
	}
}

// R11: hosts of a volume without an owner wait until the leader has found that no gateway can own it. The owner itself continues to
// serve, because the others may be wrong about it.
func TestHostsWaitForAnOwnerUnlessTheLeaderHasFoundThatThereCanBeNone(t *testing.T) {
	const waits, unavailable, forwards = "waits", "unavailable", "forwards"
	of := func(reason string) []model.Condition {
		return []model.Condition{{Type: model.ConditionReady, Status: model.ConditionFalse, Reason: reason}}
	}
	deleted := time.Now()
	for _, c := range []struct {
		name       string
		conditions []model.Condition
		change     func(*model.Volume)
		// without: Orphaned or Unowned; owned: by gateway 1, as gateway 2 sees it.
		without, owned string
	}{
		{"not decided on yet", nil, nil, waits, forwards},
		{"ready before", []model.Condition{{Type: model.ConditionReady, Status: model.ConditionTrue, Reason: "Ready"}}, nil, waits, forwards},
		{"another gateway takes over", of(model.ReasonTakeoverPending), nil, waits, waits},
		{"its image was being made", of("NoImage"), nil, waits, forwards},
		{"the owner is dead", of(model.ReasonOwnerDead), nil, unavailable, unavailable},
		{"no gateway", of(model.ReasonNoGateway), nil, unavailable, unavailable},
		{"every attempt failed", of(model.ReasonOpenFailed), nil, unavailable, unavailable},
		{"no image", of(model.ReasonImageMissing), nil, unavailable, unavailable},
		{"another pool", of(model.ReasonPoolNotIdentified), nil, unavailable, unavailable},
		{"deleted", nil, func(v *model.Volume) { v.Meta.DeleteTime = &deleted }, unavailable, forwards},
		{"rolled back", nil, func(v *model.Volume) { v.Status.RollBack = &model.RollBackRequest{} }, unavailable, forwards},
	} {
		for _, o := range []struct {
			ownership model.Ownership
			want      string
		}{
			{model.Ownership{State: model.Orphaned}, c.without},
			{model.Ownership{State: model.Unowned}, c.without},
			{model.Ownership{State: model.Owned, Owner: desiredtest.Ref(1)}, c.owned},
		} {
			v := desiredtest.Volume(o.ownership)
			v.Status.Conditions = c.conditions
			if c.change != nil {
				c.change(v)
			}
			got := map[bool]string{true: waits, false: unavailable}
			role, owner, transitioning := desired.RoleOf(v, desiredtest.Ref(2))
			shown := got[transitioning]
			if owner != 0 && !transitioning {
				shown = forwards
			}
			if shown != o.want || role != pb.VolumeRole_VOLUME_ROLE_FORWARDER {
				t.Errorf("%s, %s: %s (%v), want %s", c.name, o.ownership.State, shown, role, o.want)
			}
			if role, _, _ := desired.RoleOf(v, desiredtest.Ref(1)); o.ownership.State == model.Owned && role != pb.VolumeRole_VOLUME_ROLE_OWNER {
				t.Errorf("%s: the owner receives %v", c.name, role)
			}
		}
	}
}

// A restarted process is another client: it does not own the volumes of its predecessor.
func TestAnotherIncarnationOfTheOwnerReceivesNoServingRole(t *testing.T) {
	o := desiredtest.Cluster()
	state, _ := desired.Build(o, o.Gateways["gw-1"], desired.Process{Incarnation: "another"}, desired.Settings{}, desired.Cache{})
	if v := volumeIn(t, state); v.GetRole() != pb.VolumeRole_VOLUME_ROLE_FORWARDER {
		t.Errorf("its role is %v", v.GetRole())
	}
}

func TestCachedPartsAreReusedOnlyWhereNothingHasChanged(t *testing.T) {
	o := desiredtest.Cluster()
	var made desired.Cache
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"nothing again", func() {}},
		{"the volume's owner", func() {
			o.Put(desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 4, Order: 11, Owner: desiredtest.Ref(2)}))
		}},
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
			o.Put(desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 5, Order: 12, Owner: desiredtest.Ref(1)}))
		}},
		{"the volume's uid", func() {
			another := desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 5, Order: 12, Owner: desiredtest.Ref(1)})
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
		var state desired.State
		state, made = desired.Build(o, o.Gateways["gw-1"], desired.Process{Incarnation: "i"}, desired.Settings{ClusterID: "c"}, made)
		if fresh := of(o, "gw-1"); !bytes.Equal(state.Digest(), fresh.Digest()) {
			t.Errorf("after %s has changed: %v, built from the start %v", change.what, state, fresh)
		}
	}
	if names := made.VolumeNames(); len(names) != 0 {
		t.Errorf("still cached: %v", names)
	}
}

func TestTheDesiredStateHasExactlyTheExportsOfTheGateway(t *testing.T) {
	o := desiredtest.Cluster()
	if target := targetIn(of(o, "gw-3")); target != nil {
		t.Errorf("gw-3 is not in the path set and receives %v", target)
	}
	target := targetIn(of(o, "gw-2"))
	if len(target.GetPorts()) != 2 || target.GetPorts()[0].GetRelativeTargetPortId() != 1 {
		t.Errorf("ports: %v, want those of the path set, in order (R11)", target.GetPorts())
	}
	access := target.GetAccess()
	portals := []string{"192.0.2.1:3260,11", "192.0.2.2:3260,12"}
	if len(access) != 1 || !slices.Equal(slices.Sorted(slices.Values(access[0].GetPortals())), portals) {
		t.Errorf("access: %v, want web with the portals as they are advertised", access)
	}
	peers := of(o, "gw-2")[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_PEER, ID: "1"}].GetPeer()
	if peers.GetForwardingAddress() != "10.0.9.1:3261" || peers.GetFenced() {
		t.Errorf("peer 1: %v", peers)
	}
}

// R11: a LUN without an image would be a LUN of no size.
func TestAVolumeThatIsNotMadeYetIsExportedNowhere(t *testing.T) {
	o := desiredtest.Cluster()
	fresh := desiredtest.Volume(model.Ownership{State: model.Unowned})
	fresh.Status.CapacityBytes = 0
	o.Put(fresh)
	state := of(o, "gw-1")
	if luns := targetIn(state).GetLuns(); len(luns) != 0 {
		t.Errorf("LUNs: %v", luns)
	}
	if state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_VOLUME, ID: "volume-uid"}] != nil {
		t.Error("the volume is sent")
	}
}

// R9: sessions on a leaving gateway stay until they are asked to log out; new logins are redirected to a gateway that stays.
func TestAGatewayThatLeavesExportsButIsNotAdvertised(t *testing.T) {
	o := desiredtest.Cluster()
	leaves := *o.Targets["db"]
	leaves.Status.Leaving = map[uint32]time.Time{1: time.Unix(0, 0)}
	o.Put(&leaves)
	for name, redirect := range map[string]bool{"gw-1": true, "gw-2": false} {
		target := targetIn(of(o, name))
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
	if shown := targetIn(of(o, "gw-1")).GetAccess()[0].GetPortals(); len(shown) != 2 {
		t.Errorf("shown are %v where all leave: no way would be left", shown)
	}
}

func TestAGatewayWhosePathSetHasNoOtherStreamIsProbedByAnother(t *testing.T) {
	o := desiredtest.Cluster()
	key := desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_PEER, ID: "1"}
	if of(o, "gw-3")[key] != nil {
		t.Error("gw-3 shares no path set with gw-1, which has a stream, and knows it")
	}
	for _, name := range []string{"gw-1", "gw-2"} {
		lost := *o.Gateways[name]
		lost.Status.Health = model.GatewayDisconnected
		o.Put(&lost)
	}
	if peer := of(o, "gw-3")[key].GetPeer(); peer.GetForwardingAddress() != "10.0.9.1:3261" || peer.GetFenced() {
		t.Errorf("gw-3 receives gw-1: %v", peer)
	}
}

func TestADeadPeerIsSentAsFenced(t *testing.T) {
	o := desiredtest.Cluster()
	dead := *o.Gateways["gw-1"]
	dead.Status.Health = model.GatewayDead
	o.Put(&dead)
	if !of(o, "gw-2")[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_PEER, ID: "1"}].GetPeer().GetFenced() {
		t.Error("later messages of it would be accepted")
	}
}

func TestTheOwnerHearsOfItsVolumeAlsoWhenNoTargetShowsItAnyMore(t *testing.T) {
	o := desiredtest.Cluster()
	o.Forget(model.KindTarget, "db")
	o.Put(desiredtest.Volume(model.Ownership{State: model.Moving, Epoch: 3, Owner: desiredtest.Ref(1)}))
	if role := volumeIn(t, of(o, "gw-1")).GetRole(); role != pb.VolumeRole_VOLUME_ROLE_RELEASING {
		t.Errorf("its role is %v: it would never release the volume", role)
	}
}
