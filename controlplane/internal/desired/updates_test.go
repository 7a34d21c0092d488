package desired_test

import (
	"bytes"
	"fmt"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
)

// Streams depend on this: the same objects yield the same state, and updates lead from one state to the next.
func TestUpdatesLeadFromOneStateToTheNext(t *testing.T) {
	o := desiredtest.Cluster()
	before := of(o, "gw-1")
	if !bytes.Equal(before.Digest(), of(desiredtest.Cluster(), "gw-1").Digest()) {
		t.Fatal("the same objects gave two digests")
	}
	if updates := desired.Updates(before, of(o, "gw-1"), 7); updates != nil {
		t.Fatalf("nothing changed and %v is sent", updates)
	}
	o.Put(desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 4, Order: 10, Owner: desiredtest.Ref(2)}))
	o.Forget(model.KindHost, "web")
	after := of(o, "gw-1")
	held := desired.State{}
	for _, update := range append(desired.Updates(nil, before, 7), desired.Updates(before, after, 8)...) {
		desiredtest.Apply(held, update)
	}
	if !bytes.Equal(held.Digest(), after.Digest()) {
		t.Error("a gateway that applied every update holds something else")
	}
	if len(held) != len(after) {
		t.Errorf("it holds %d objects, want %d", len(held), len(after))
	}
}

func TestALargeUpdateComesInPartsThatAMessageCanHold(t *testing.T) {
	o := desiredtest.Cluster()
	target := *o.Targets["db"]
	target.Spec.Luns = nil
	for i := range 3000 {
		v := desiredtest.Volume(model.Ownership{State: model.Owned, Owner: desiredtest.Ref(1)})
		v.Meta.Name, v.Meta.UID = fmt.Sprintf("v%d", i), fmt.Sprintf("0123456789012345678901234567-%06d", i)
		o.Put(v)
		target.Spec.Luns = append(target.Spec.Luns, model.TargetLun{ID: int32(i), Volume: v.Meta.Name})
	}
	o.Put(&target)
	updates := desired.Updates(nil, of(o, "gw-1"), 7)
	if len(updates) < 2 {
		t.Fatalf("%d messages", len(updates))
	}
	for i, update := range updates {
		if last := i == len(updates)-1; update.GetMore() == last || (len(update.GetDigest()) > 0) != last {
			t.Errorf("message %d of %d: more %v, digest %x", i, len(updates), update.GetMore(), update.GetDigest())
		}
	}
}
