package dispatch

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// commit stores reservations on top of a generation.
func (g *gateway) commit(r *replica, id, epoch, generation uint64) *pb.ReservationOutcome {
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationCommit{ReservationCommit: &pb.ReservationCommit{
		RequestId: id, VolumeUid: r.volume.Meta.UID, Epoch: epoch, ExpectedGeneration: generation, State: []byte("held")}}})
	return g.next(func(m *pb.ConnectResponse) bool { return m.GetReservationOutcome() != nil }).GetReservationOutcome()
}

// R8: a gateway that knows a volume's epoch is not therefore its owner.
func TestOnlyTheOwnerOfAnEpochStoresReservationsInIt(t *testing.T) {
	r := start(t)
	create(r, r.Gateways, &model.Gateway{Meta: model.Meta{Name: "gw-2"}, Spec: model.GatewaySpec{
		GatewayPool: "default", Node: "node-1", ForwardingAddress: "127.0.0.2:3261",
		Portals: []model.Portal{{Listen: "127.0.0.2:3260", Fabric: "red"}}}})
	owner, other := r.connect(hello("first")), hello("first") // the same incarnation name, but another gateway
	other.Gateway = "gw-2"
	stranger := r.connect(other)
	owner.update()
	stranger.update() // it is admitted
	for i, want := range []struct {
		by     *gateway
		change func(model.Ownership) (model.Ownership, error)
		epoch  uint64
		result pb.CommitResult
	}{
		{stranger, nil, 1, pb.CommitResult_COMMIT_RESULT_FENCED},
		{owner, nil, 1, pb.CommitResult_COMMIT_RESULT_COMMITTED},
		{stranger, model.Ownership.BeginFence, 2, pb.CommitResult_COMMIT_RESULT_FENCED},
		{owner, nil, 2, pb.CommitResult_COMMIT_RESULT_FENCED}, // no owner
	} {
		if want.change != nil {
			r.own(want.change)
		}
		generation := uint64(0)
		if i > 1 {
			generation = 1
		}
		if outcome := want.by.commit(r, uint64(i), want.epoch, generation); outcome.GetResult() != want.result {
			t.Errorf("%d: %v, want %v", i, outcome, want.result)
		}
	}
}

// A gateway that still serves behind its lock is indistinguishable from one that merely knows the epoch. The answer is that
// nothing was stored (R3), and not that the gateway is fenced.
func TestReservationsOfAVolumeWithoutAKnownOwnerAreNotStored(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	ref := r.volume.Status.Ownership.Owner
	acquire := func(o model.Ownership) (model.Ownership, error) { return o.Acquire(ref) }
	locked := func(o model.Ownership) (model.Ownership, error) { return o.Locked(ref) }
	for i, want := range []struct {
		change func(model.Ownership) (model.Ownership, error)
		epoch  uint64
		result pb.CommitResult
	}{
		{nil, 1, pb.CommitResult_COMMIT_RESULT_COMMITTED},
		{model.Ownership.LoseOwner, 1, pb.CommitResult_COMMIT_RESULT_NOT_COMMITTED},
		{acquire, 1, pb.CommitResult_COMMIT_RESULT_NOT_COMMITTED},
		{locked, 1, pb.CommitResult_COMMIT_RESULT_FENCED},
		{nil, 2, pb.CommitResult_COMMIT_RESULT_COMMITTED},
	} {
		if want.change != nil {
			r.own(want.change)
		}
		if got := g.commit(r, uint64(i), want.epoch, uint64(min(i, 1))); got.GetResult() != want.result {
			t.Errorf("%d: %v, want %v", i, got, want.result)
		}
	}
}
