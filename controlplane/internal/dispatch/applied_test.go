package dispatch

import (
	"context"
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// about returns a state with a target of one volume, with this export and content.
func about(version uint64, export, content string) sentState {
	return sentState{version: version, at: noon, gateway: "g", volumes: map[string]string{"v": "orders"},
		targets: map[string]sentTarget{"iqn": {uid: "t", export: export, digest: []byte(content), volumes: []string{"v"}}}}
}

func ackOf(version uint64, refused ...*pb.ObjectRefusal) *pb.StreamAck {
	return &pb.StreamAck{Version: version, Refused: refused}
}

func refusalOf(kind pb.ObjectKind, id, reason string) *pb.ObjectRefusal {
	return &pb.ObjectRefusal{Key: &pb.ObjectKey{Kind: kind, Id: id}, Reason: reason}
}

func TestATargetCountsAsAppliedOnceItIsAcknowledgedAsItIsNow(t *testing.T) {
	volume, target := pb.ObjectKind_OBJECT_KIND_VOLUME, pb.ObjectKind_OBJECT_KIND_TARGET
	for name, c := range map[string]struct {
		happens func(*acknowledged)
		after   time.Duration
		export  string
		refused string
	}{
		"it was acknowledged": {func(a *acknowledged) { a.receive(ackOf(5)) }, 0, "1.1", ""},
		"another spec with the same content needs no acknowledgement": {func(a *acknowledged) {
			a.receive(ackOf(5))
			a.sending(about(0, "2.1", "x"))
		}, 0, "2.1", ""},
		"it is another one, sent just now": {func(a *acknowledged) {
			a.receive(ackOf(5))
			a.reports(noon)
			a.sending(about(6, "2.1", "y"))
		}, 0, "1.1", ""},
		"it is another one, and no answer comes": {func(a *acknowledged) {
			a.receive(ackOf(5))
			a.reports(noon)
			a.sending(about(6, "2.1", "y"))
		}, lateAck, "", ""},
		"the answer for the newest is one for all": {func(a *acknowledged) {
			a.sending(about(6, "2.1", "y"))
			a.sending(about(7, "3.1", "z"))
			a.receive(ackOf(7))
		}, lateAck, "3.1", ""},
		"an old answer is none for what was sent since": {func(a *acknowledged) {
			a.sending(about(6, "2.1", "y"))
			a.receive(ackOf(5))
		}, lateAck, "", ""},
		"it was refused":         {func(a *acknowledged) { a.receive(ackOf(5, refusalOf(target, "iqn", "no luck"))) }, 0, "", "no luck"},
		"its volume was refused": {func(a *acknowledged) { a.receive(ackOf(5, refusalOf(volume, "v", "no pool"))) }, 0, "", "volume orders: no pool"},
		"it was refused for no reason given": {func(a *acknowledged) { a.receive(ackOf(5, refusalOf(target, "iqn", ""))) },
			0, "", "the gateway does not say why"},
		"the refusal was corrected": {func(a *acknowledged) {
			a.receive(ackOf(5, refusalOf(target, "iqn", "no luck")))
			a.receive(ackOf(5))
		}, 0, "1.1", ""},
		"a volume that it shall have has not come": {func(a *acknowledged) {
			without := about(5, "1.1", "x")
			without.volumes = nil
			*a = acknowledged{}
			a.sending(without)
			a.receive(ackOf(5))
		}, lateAck, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &acknowledged{}
			a.sending(about(5, "1.1", "x"))
			c.happens(a)
			reports, changed := a.reports(noon.Add(c.after))
			if !changed || len(reports) == 0 || reports[0].Kind != model.KindTarget || reports[0].UID != "t" {
				t.Fatalf("reports: %+v, %v", reports, changed)
			}
			if got := reports[0]; got.Export != c.export || got.Refused != c.refused {
				t.Errorf("export %q refused %q, want %q and %q", got.Export, got.Refused, c.export, c.refused)
			}
		})
	}
}

func TestTheContentOfAnAcknowledgementIsReusedOnlyWhereItIsTheSame(t *testing.T) {
	o := desiredtest.Cluster()
	gateway := o.Gateways["gw-1"]
	var before sentState
	var sent desired.State
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"the volume's owner", func() {
			o.Put(desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 4, Order: 11, Owner: desiredtest.Ref(2)}))
		}},
		{"the volume has no image any more", func() {
			unmade := desiredtest.Volume(model.Ownership{})
			unmade.Status.CapacityBytes = 0
			o.Put(unmade)
		}},
		{"the volume is back", func() { o.Put(desiredtest.Volume(model.Ownership{})) }},
		{"the target is gone", func() { clear(o.Targets) }},
	} {
		change.do()
		state := stateOf(o)
		next := sentStateOf(o, gateway, state, before, sent.SameKeys(state))
		if fresh := sentStateOf(o, gateway, state, sentState{}, false); !reflect.DeepEqual(next, fresh) {
			t.Errorf("after %s: %+v, built from the start %+v", change.what, next, fresh)
		}
		before, sent = next, state
	}
	if len(before.targets) != 0 {
		t.Errorf("still reported: %+v", before.targets)
	}
}

func TestTheAnswerOfAnEarlierStreamIsIgnored(t *testing.T) {
	a := &acknowledged{}
	a.sending(about(5, "1.1", "x"))
	a.receive(ackOf(3))
	if reports, changed := a.reports(noon.Add(time.Hour)); changed {
		t.Errorf("reports: %+v", reports)
	}
}

func TestAVolumeThatIsRefusedIsReportedAndTheRestIsTheGateways(t *testing.T) {
	a := &acknowledged{}
	a.sending(about(5, "1.1", "x"))
	a.receive(ackOf(5, refusalOf(pb.ObjectKind_OBJECT_KIND_VOLUME, "v", "no pool"),
		refusalOf(pb.ObjectKind_OBJECT_KIND_VOLUME, "gone", "no pool"),
		refusalOf(pb.ObjectKind_OBJECT_KIND_LISTENER, "1", "address in use"),
		refusalOf(pb.ObjectKind_OBJECT_KIND_SETTINGS, "", "no number")))
	reports, _ := a.reports(noon)
	want := map[model.AppliedReport]bool{
		{Kind: model.KindTarget, UID: "t", Refused: "volume orders: no pool"}: true,
		{Kind: model.KindVolume, UID: "v", Refused: "no pool"}:                true,
		{Kind: model.KindGateway, UID: "g", Refused: "listener 1: address in use; settings: no number", ClosedPortals: 1,
			ClosedForwarding: "no number"}: true,
	}
	for _, r := range reports {
		if !want[r] {
			t.Errorf("reported: %+v", r)
		}
		delete(want, r)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %+v", want)
	}
}

// R15: the store records which parts of its desired state a gateway applied, with a write only if that changes.
func TestAcknowledgementsAndRefusalsOfAGatewayAreStored(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	refuse := func(version uint64, reason string) {
		ack := ackOf(version)
		if reason != "" {
			ack.Refused = append(ack.Refused, refusalOf(pb.ObjectKind_OBJECT_KIND_VOLUME, r.volume.Meta.UID, reason))
		}
		g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Ack{Ack: ack}})
	}
	version := g.update().GetVersion()
	refuse(version, "no luck")
	var reasons []string
	err := r.WatchObserved(bounded(t), 0, func(change store.RecordChange[model.Observed]) error {
		report := change.Record.Applied
		switch {
		case report == nil || report.Kind != model.KindVolume:
		case change.Type == store.Deleted:
			return context.Canceled
		default:
			reasons = append(reasons, report.Refused)
			refuse(version, "no luck") // the same again, which is no change
			refuse(version, "")
		}
		return nil
	})
	if len(reasons) != 1 || reasons[0] != "no luck" {
		t.Errorf("stored: %v, ended by %v", reasons, err)
	}
}

// stateOf is the desired state of gw-1.
func stateOf(o *objects.Objects) desired.State {
	state, _ := desired.Build(o, o.Gateways["gw-1"], desired.Process{Incarnation: "i"}, desired.Settings{ClusterID: "c"}, desired.Cache{})
	return state
}
