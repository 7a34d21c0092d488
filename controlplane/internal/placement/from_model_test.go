package placement

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestAGatewaysHealthAndWishesDecideWhatItMayBeGiven(t *testing.T) {
	for _, test := range []struct {
		claim   string
		gateway model.Gateway
		want    Health
	}{
		{"ready", model.Gateway{Status: model.GatewayStatus{Health: model.GatewayReady}}, Usable},
		{"cordoned", model.Gateway{
			Spec: model.GatewaySpec{Cordoned: true}, Status: model.GatewayStatus{Health: model.GatewayReady},
		}, Cordoned},
		{"disconnected serves on", model.Gateway{
			Status: model.GatewayStatus{Health: model.GatewayDisconnected},
		}, Cordoned},
		{"new", model.Gateway{Status: model.GatewayStatus{Health: model.GatewayNew}}, Cordoned},
		{"drain was asked for", model.Gateway{
			Status: model.GatewayStatus{Health: model.GatewayReady, Drain: true},
		}, Draining},
		{"drained", model.Gateway{Status: model.GatewayStatus{Health: model.GatewayDrained}}, Draining},
		{"dead though it was to be drained", model.Gateway{
			Status: model.GatewayStatus{Health: model.GatewayDead, Drain: true},
		}, Dead},
	} {
		if got := GatewayFrom(&test.gateway, 0).Health; got != test.want {
			t.Errorf("%s: health %d, want %d", test.claim, got, test.want)
		}
	}
}

func TestAMoveUnderWayCountsAsDone(t *testing.T) {
	one, two := model.GatewayRef{Number: 1}, model.GatewayRef{Number: 2}
	for state, want := range map[model.OwnershipState]uint32{
		model.Unowned: 0, model.Orphaned: 0, model.Fencing: 0, model.Owned: 1, model.Opening: 1,
		model.Moving: 2, model.Acquiring: 2,
	} {
		v := model.Volume{Status: model.VolumeStatus{
			Ownership: model.Ownership{State: state, Owner: one, Next: two},
		}}
		got := VolumeFrom(&v, nil, 5)
		if got.Owner != want || got.Load != 5 || got.PoolKind != UnknownPool {
			t.Errorf("%s: got %+v, want owner %d", state, got, want)
		}
	}
}

func TestObjectsOfTheModelKeepTheirMeaning(t *testing.T) {
	local := &model.StoragePool{Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "n"}}}
	if v := VolumeFrom(&model.Volume{}, local, 0); v.PoolKind != LocalPool || v.Node != "n" {
		t.Errorf("a volume of a local pool is %+v", v)
	}
	rbd := &model.StoragePool{Spec: model.StoragePoolSpec{RBD: &model.RBDPool{}}}
	if v := VolumeFrom(&model.Volume{}, rbd, 0); v.PoolKind != RBDPool {
		t.Errorf("a volume of an RBD pool is %+v", v)
	}
	h := HostFrom(&model.Host{Spec: model.HostSpec{Switches: []string{"f/s"}}})
	if !reflect.DeepEqual(h.Switches, []Attachment{{"f", "s"}}) {
		t.Errorf("a host on f/s sits on %+v", h.Switches)
	}
	f := FabricFrom(&model.Fabric{Spec: model.FabricSpec{
		Switches: []string{"s", "r"}, Links: []model.FabricLink{{A: "s", B: "r", Cost: 3}},
	}})
	if !reflect.DeepEqual(f, Fabric{Switches: []string{"s", "r"}, Links: []Link{{"s", "r", 3}}}) {
		t.Errorf("the fabric is %+v", f)
	}
	target := TargetFrom(&model.Target{
		Spec: model.TargetSpec{
			GatewayPool: "p", Paths: 2, Luns: []model.TargetLun{{Volume: "v"}}, Hosts: []string{"h"},
		},
		Status: model.TargetStatus{PathSet: []uint32{4}},
	})
	want := Target{
		GatewayPool: "p", Paths: 2, PathSet: []uint32{4}, Volumes: []string{"v"}, Hosts: []string{"h"},
	}
	if !reflect.DeepEqual(target, want) {
		t.Errorf("the target is %+v, want %+v", target, want)
	}
	g := GatewayFrom(&model.Gateway{
		Spec: model.GatewaySpec{
			Weight: 7, Portals: []model.Portal{{Advertised: "x:1", Fabric: "f", Switch: "s"}},
		},
		Status: model.GatewayStatus{Number: 3, PortalGroupTags: map[string]uint32{"f": 9}},
	}, 11)
	if g.Number != 3 || g.Weight != 7 || g.OtherLoad != 11 ||
		!reflect.DeepEqual(g.Portals, []Portal{{"x:1", 9, "f", "s"}}) {
		t.Errorf("the gateway is %+v", g)
	}
}
