package store_test

import (
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestGatewayNumbersAndPortalGroupTagsAreNeverReused(t *testing.T) {
	f := open(t)
	f.prerequisites()
	seen, tags := map[uint32]bool{}, map[uint32]bool{}
	for range 3 {
		made := gateway(1)
		must(f, f.Gateways, made)
		if seen[made.Status.Number] || made.Status.Number == 0 {
			t.Fatalf("number %d a second time", made.Status.Number)
		}
		seen[made.Status.Number] = true
		for fabric, tag := range made.Status.PortalGroupTags {
			if tags[tag] || tag == 0 {
				t.Fatalf("tag %d of fabric %s a second time", tag, fabric)
			}
			tags[tag] = true
		}
		gone, err := f.Gateways.Delete(t.Context(), "gw-1", store.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.term().Remove(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	if len(tags) != 6 {
		t.Fatalf("%d tags for 3 gateways on 2 fabrics", len(tags))
	}
}

func TestGatewaysMadeAtTheSameTimeGetDifferentNumbers(t *testing.T) {
	f := open(t)
	f.prerequisites()
	var all sync.WaitGroup
	made := make([]*model.Gateway, 6)
	for i := range made {
		made[i] = gateway(i + 1)
		all.Go(func() {
			if err := f.Gateways.Create(t.Context(), made[i], false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[uint32]bool{}
	for _, g := range made {
		if seen[g.Status.Number] {
			t.Fatalf("number %d twice", g.Status.Number)
		}
		seen[g.Status.Number] = true
	}
}

func TestRelativePortIdentifiersStayWithTheirPort(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Targets, target("one"), target("two"))
	wanted := []model.TargetPort{{Gateway: 1, PortalGroupTag: 1}, {Gateway: 2, PortalGroupTag: 3}}
	one, err := f.term().AddPorts(t.Context(), "one", wanted)
	if err != nil {
		t.Fatal(err)
	}
	two, err := f.term().AddPorts(t.Context(), "two", wanted)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.term().AddPorts(t.Context(), "one", append(wanted, model.TargetPort{Gateway: 3, PortalGroupTag: 5}))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[uint32]bool{}
	for _, port := range append(append([]model.TargetPort(nil), again.Status.Ports...), two.Status.Ports...) {
		if ids[port.RelativePortID] || port.RelativePortID == 0 {
			t.Fatalf("identifier %d twice", port.RelativePortID)
		}
		ids[port.RelativePortID] = true
	}
	if len(again.Status.Ports) != 3 || again.Status.Ports[0] != one.Status.Ports[0] || again.Status.Ports[1] != one.Status.Ports[1] {
		t.Fatalf("first %+v, then %+v", one.Status.Ports, again.Status.Ports)
	}
}

func TestALunNumberIsQuarantinedForOtherVolumes(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"), volume("mail"))
	must(f, f.Targets, target("db", model.TargetLun{ID: 3, Volume: "orders"}))
	swap := target("db", model.TargetLun{ID: 3, Volume: "mail"})
	wantError[*model.InvalidError](t, f.Targets.Update(t.Context(), swap, false), "unmap it first")
	update := func(luns ...model.TargetLun) error {
		return f.Targets.Update(t.Context(), target("db", luns...), false)
	}
	if err := update(); err != nil {
		t.Fatal(err)
	}
	wantError[*model.InvalidError](t, update(model.TargetLun{ID: 3, Volume: "mail"}), "spec.luns[0].id")
	if err := update(model.TargetLun{ID: 3, Volume: "orders"}); err != nil {
		t.Fatalf("the same volume under its own number: %v", err)
	}
	if err := update(); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(model.LunQuarantine)
	if err := update(model.TargetLun{ID: 3, Volume: "mail"}); err != nil {
		t.Fatalf("after the quarantine: %v", err)
	}
}

// Hosts know a device by IQN and LUN number: a new volume or target of the same name is not the one that they knew.
func TestALunNumberStaysQuarantinedWhenItsVolumeOrTargetIsCreatedAgain(t *testing.T) {
	lun := model.TargetLun{ID: 3, Volume: "orders"}
	gone := func(f *fixture) {
		t.Helper()
		object, err := f.Targets.Delete(t.Context(), "db", store.DeleteOptions{})
		if err == nil {
			err = f.term().Remove(t.Context(), object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	another := func(f *fixture) {
		t.Helper()
		object, err := f.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
		if err == nil {
			err = f.term().Remove(t.Context(), object)
		}
		if err != nil {
			t.Fatal(err)
		}
		must(f, f.Volumes, volume("orders"))
	}
	update := func(f *fixture, luns ...model.TargetLun) error {
		return f.Targets.Update(t.Context(), target("db", luns...), false)
	}
	create := func(f *fixture, luns ...model.TargetLun) error {
		return f.Targets.Create(t.Context(), target("db", luns...), false)
	}
	made := func() *fixture {
		f := open(t)
		f.prerequisites()
		must(f, f.Volumes, volume("orders"), volume("mail"))
		must(f, f.Targets, target("db", lun))
		return f
	}
	t.Run("the volume", func(t *testing.T) {
		f := made()
		if err := update(f); err != nil {
			t.Fatal(err)
		}
		another(f)
		wantError[*model.InvalidError](t, update(f, lun), "spec.luns[0].id")
		f.clock.advance(model.LunQuarantine)
		if err := update(f, lun); err != nil {
			t.Fatalf("after the quarantine: %v", err)
		}
	})
	t.Run("the target", func(t *testing.T) {
		f := made()
		gone(f)
		other := model.TargetLun{ID: 3, Volume: "mail"}
		wantError[*model.InvalidError](t, create(f, other), "spec.luns[0].id")
		if err := create(f); err != nil {
			t.Fatal(err)
		}
		wantError[*model.InvalidError](t, update(f, other), "spec.luns[0].id")
		gone(f) // it never had the number itself, and leaves it unchanged
		wantError[*model.InvalidError](t, create(f, other), "spec.luns[0].id")
		if err := create(f, lun); err != nil {
			t.Fatalf("the same volume under its own number: %v", err)
		}
		gone(f)
		f.clock.advance(model.LunQuarantine)
		if err := create(f, other); err != nil {
			t.Fatalf("after the quarantine: %v", err)
		}
	})
	t.Run("both", func(t *testing.T) {
		f := made()
		gone(f)
		another(f)
		wantError[*model.InvalidError](t, create(f, lun), "spec.luns[0].id")
	})
}
