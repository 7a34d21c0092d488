package dispatch

import (
	"testing"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// refused returns the gateway's condition after its stream has ended with an error.
func (r *replica) refused(hello *pb.StreamHello) (condition model.Condition, code codes.Code) {
	r.t.Helper()
	code = r.connect(hello).ends()
	gateway, err := r.Gateways.Get(r.t.Context(), "gw-1")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range gateway.Status.Conditions {
		if c.Type == model.ConditionRefused {
			condition = c
		}
	}
	return condition, code
}

func TestAGatewayThatContradictsItsObjectOrTheStoreIsRefusedAndReported(t *testing.T) {
	r := start(t)
	for reason, change := range map[string]func(*pb.StreamHello){
		reasonAnotherSystem: func(h *pb.StreamHello) { h.SystemId, h.KnownVolumes = model.NewUID(), 3 },
		reasonWrongNode:     func(h *pb.StreamHello) { h.Node = "node-9" },
	} {
		first := hello("first")
		change(first)
		condition, code := r.refused(first)
		if code != codes.FailedPrecondition || condition.Status != model.ConditionTrue || condition.Reason != reason {
			t.Errorf("%s: %v, %+v", reason, code, condition)
		}
	}
	right := hello("second")
	right.SystemId, right.Node = r.SystemID(), "node-1"
	r.connect(right).update()
	gateway, err := r.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range gateway.Status.Conditions {
		if c.Type == model.ConditionRefused && c.Status != model.ConditionFalse {
			t.Errorf("after it was admitted: %+v", c)
		}
	}
}

func TestAnEmptyStoreRefusesAGatewayThatKnowsVolumes(t *testing.T) {
	r := start(t)
	if _, err := storetest.Modify(t.Context(), r.term(), "orders", func(v *model.Volume) (bool, error) {
		v.Status.Ownership = model.Ownership{}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	volume, err := r.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.term().Remove(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	knowing := hello("first")
	knowing.KnownVolumes = 2
	// The view receives the removal a moment later.
	for t.Context().Err() == nil {
		if condition, code := r.refused(knowing); code == codes.FailedPrecondition && condition.Reason == reasonUnknownVolumes {
			return
		}
	}
}

func TestAProcessThatCannotListenDoesNotReplaceTheGateway(t *testing.T) {
	r := start(t)
	first := r.connect(hello("first"))
	first.update()
	second := hello("second")
	second.Capabilities = []string{capabilityReady}
	g := r.connect(second)
	welcome := g.next(func(m *pb.ConnectResponse) bool { return m.GetWelcome() != nil }).GetWelcome()
	if !welcome.GetAwaitsReady() || len(welcome.GetListen()) != 2 || welcome.GetSystemId() != r.SystemID() {
		t.Fatalf("%v", welcome)
	}
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Ready{Ready: &pb.StreamReady{InUse: []string{"127.0.0.1:3260"}}}})
	if got := g.ends(); got != codes.FailedPrecondition {
		t.Errorf("the second process ended with %v", got)
	}
	r.own(func(o model.Ownership) (model.Ownership, error) { return o.Serving(o.Owner, o.Epoch) })
	if first.update() == nil {
		t.Error("the first process is the gateway no more")
	}
	third := hello("third")
	third.Capabilities = []string{capabilityReady}
	g = r.connect(third)
	g.next(func(m *pb.ConnectResponse) bool { return m.GetWelcome() != nil })
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Ready{Ready: &pb.StreamReady{}}})
	g.update()
	if got := first.ends(); got != codes.Aborted {
		t.Errorf("the replaced process ended with %v", got)
	}
}
