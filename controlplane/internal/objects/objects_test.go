package objects_test

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// layout has a target with a volume and a host, exported by a gateway.
func layout() *objects.Objects {
	o := objects.New()
	o.Put(&model.Fabric{Meta: model.Meta{Name: "red"}})
	o.Put(gatewayAt("192.0.2.1:3260"))
	o.Put(&model.StoragePool{Meta: model.Meta{Name: "nvme"}, Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "n"}}})
	o.Put(&model.Host{Meta: model.Meta{Name: "web"}, Spec: model.HostSpec{Initiators: []string{"iqn.2026-11.example:web"}}})
	o.Put(ownedBy(1))
	o.Put(&model.Target{Meta: model.Meta{Name: "db"}, Spec: model.TargetSpec{Paths: 1, Hosts: []string{"web"},
		Luns: []model.TargetLun{{Volume: "orders"}}}, Status: model.TargetStatus{PathSet: []uint32{1}}})
	return o
}

func gatewayAt(portal string) *model.Gateway {
	return &model.Gateway{Meta: model.Meta{Name: "gw"}, Spec: model.GatewaySpec{Node: "n", Weight: 100,
		Portals: []model.Portal{{Advertised: portal, Fabric: "red"}}},
		Status: model.GatewayStatus{Number: 1, Health: model.GatewayReady, PortalGroupTags: map[string]uint32{"red": 1}}}
}

func ownedBy(number uint32) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: "orders", UID: "u"}, Spec: model.VolumeSpec{Pool: "nvme"},
		Status: model.VolumeStatus{CapacityBytes: 1,
			Ownership: model.Ownership{State: model.Owned, Owner: model.GatewayRef{Number: number}}}}
}

func TestTheLayoutIsAnotherForAllButOwnersAndStates(t *testing.T) {
	unmade, elsewhere, anew := ownedBy(1), ownedBy(1), ownedBy(1)
	unmade.Status.CapacityBytes, elsewhere.Spec.Pool, anew.Meta.UID = 0, "ssd", "another"
	for what, c := range map[string]struct {
		change  func(*objects.Objects)
		another bool
	}{
		"an owner":                   {func(o *objects.Objects) { o.Put(ownedBy(2)) }, false},
		"a snapshot":                 {func(o *objects.Objects) { o.Put(&model.Snapshot{Meta: model.Meta{Name: "s"}}) }, false},
		"a volume that is not made":  {func(o *objects.Objects) { o.Put(unmade) }, true},
		"a volume in another pool":   {func(o *objects.Objects) { o.Put(elsewhere) }, true},
		"another volume of the name": {func(o *objects.Objects) { o.Put(anew) }, true},
		"a volume that goes":         {func(o *objects.Objects) { o.Forget(model.KindVolume, "orders") }, true},
		"a gateway":                  {func(o *objects.Objects) { o.Put(gatewayAt("192.0.2.1:3260")) }, true},
		"a host that goes":           {func(o *objects.Objects) { o.Forget(model.KindHost, "web") }, true},
	} {
		o := layout()
		before := o.Layout()
		c.change(o)
		if another := o.Layout() != before; another != c.another {
			t.Errorf("%s: another layout: %v", what, another)
		}
	}
}

func TestACachedAccessEqualsAFreshlyComputedOne(t *testing.T) {
	o := layout()
	for what, change := range map[string]func(){
		"nothing": func() {},
		"owner":   func() { o.Put(ownedBy(2)) },
		"portal":  func() { o.Put(gatewayAt("192.0.2.9:3260")) },
		"target": func() {
			target := *o.Targets["db"]
			target.Spec.Hosts = nil
			o.Put(&target)
		},
	} {
		o.Access(o.Targets["db"])
		change()
		fresh := objects.New()
		fresh.Put(o.Fabrics["red"])
		fresh.Put(o.Gateways["gw"])
		fresh.Put(o.StoragePools["nvme"])
		fresh.Put(o.Hosts["web"])
		fresh.Put(o.Volumes["orders"])
		fresh.Put(o.Targets["db"])
		got, want := o.Access(o.Targets["db"]), fresh.Access(fresh.Targets["db"])
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %s: %v, built from the start %v", what, got, want)
		}
	}
}
