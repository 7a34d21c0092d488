package dispatch

import (
	"bytes"
	"fmt"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// What a stream relies on: the same objects give the same state, and updates lead from one to the next.
func TestUpdatesLeadFromOneStateToTheNext(t *testing.T) {
	o := cluster()
	before := of(o, "gw-1")
	if !bytes.Equal(before.digest(), of(cluster(), "gw-1").digest()) {
		t.Fatal("the same objects gave two digests")
	}
	if told := updates(before, of(o, "gw-1"), 7); told != nil {
		t.Fatalf("nothing changed and %v is told", told)
	}
	o.Put(volume(model.Ownership{State: model.Owned, Epoch: 4, Order: 10, Owner: ref(2)}))
	o.Forget(model.KindHost, "web")
	after := of(o, "gw-1")
	held := desiredState{}
	for _, update := range append(updates(nil, before, 7), updates(before, after, 8)...) {
		apply(held, update)
	}
	if !bytes.Equal(held.digest(), after.digest()) {
		t.Error("a gateway that applied every update holds something else")
	}
	if len(held) != len(after) {
		t.Errorf("it holds %d objects, want %d", len(held), len(after))
	}
}

func TestALargeUpdateComesInPartsThatAMessageCanHold(t *testing.T) {
	o := cluster()
	target := *o.Targets["db"]
	target.Spec.Luns = nil
	for i := range 3000 {
		v := volume(model.Ownership{State: model.Owned, Owner: ref(1)})
		v.Meta.Name, v.Meta.UID = fmt.Sprintf("v%d", i), fmt.Sprintf("0123456789012345678901234567-%06d", i)
		o.Put(v)
		target.Spec.Luns = append(target.Spec.Luns, model.TargetLun{ID: int32(i), Volume: v.Meta.Name})
	}
	o.Put(&target)
	told := updates(nil, of(o, "gw-1"), 7)
	if len(told) < 2 {
		t.Fatalf("%d messages", len(told))
	}
	for i, update := range told {
		if last := i == len(told)-1; update.GetMore() == last || (len(update.GetDigest()) > 0) != last {
			t.Errorf("message %d of %d: more %v, digest %x", i, len(told), update.GetMore(), update.GetDigest())
		}
	}
}

func apply(held desiredState, update *pb.StreamUpdate) {
	if update.GetFull() {
		clear(held)
	}
	for _, object := range update.GetPut() {
		held[objectKey{kindOf(object), object.GetId()}] = object
	}
	for _, key := range update.GetRemoved() {
		delete(held, objectKey{key.GetKind(), key.GetId()})
	}
}

func kindOf(object *pb.DesiredObject) pb.ObjectKind {
	switch object.GetObject().(type) {
	case *pb.DesiredObject_Settings:
		return pb.ObjectKind_OBJECT_KIND_SETTINGS
	case *pb.DesiredObject_Listener:
		return pb.ObjectKind_OBJECT_KIND_LISTENER
	case *pb.DesiredObject_Peer:
		return pb.ObjectKind_OBJECT_KIND_PEER
	case *pb.DesiredObject_Pool:
		return pb.ObjectKind_OBJECT_KIND_POOL
	case *pb.DesiredObject_Volume:
		return pb.ObjectKind_OBJECT_KIND_VOLUME
	case *pb.DesiredObject_Host:
		return pb.ObjectKind_OBJECT_KIND_HOST
	case *pb.DesiredObject_Target:
		return pb.ObjectKind_OBJECT_KIND_TARGET
	}
	return pb.ObjectKind_OBJECT_KIND_UNSPECIFIED
}
