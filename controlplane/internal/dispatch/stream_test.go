package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestReportsOnSeveralVolumesAreGatheredInTheirOrder(t *testing.T) {
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
		observed, next := gatherReports(message, messages)
		text := "beat"
		if message.GetVolumeObserved() != nil {
			text = ""
			for _, o := range observed {
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

// The image may be created by a gateway that is neither this one nor the owner.
func TestAGatewayIsConcernedByAVolumeOfItsTargetsBeforeThereIsAnythingToTell(t *testing.T) {
	o := desiredtest.Cluster()
	unmade := desiredtest.Volume(model.Ownership{})
	unmade.Status.CapacityBytes = 0
	o.Put(unmade)
	state, made := desired.Build(o, o.Gateways["gw-2"], desired.Process{Incarnation: "i"}, desired.Settings{}, desired.Cache{})
	key := desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_VOLUME, ID: "volume-uid"}
	if state[key] != nil {
		t.Error("it receives a volume without an image")
	}
	exported := made.VolumeNames()
	g := &gatewayStream{}
	g.exported.Store(&exported)
	if !g.exports(view.Change{Kind: model.KindVolume, Name: "orders"}) {
		t.Error("it would not hear that the image is made")
	}
	o.Put(desiredtest.Volume(model.Ownership{}))
	if again, _ := desired.Build(o, o.Gateways["gw-2"], desired.Process{Incarnation: "i"}, desired.Settings{}, made); again[key].GetVolume().GetSizeBytes() == 0 {
		t.Error("it does not receive the volume that was made")
	}
}

// recordingStream is the replica's end of a stream whose gateway only receives.
type recordingStream struct {
	pb.GatewayStreamService_ConnectServer
	ctx  context.Context
	sent chan *pb.ConnectResponse
}

func (s *recordingStream) Context() context.Context { return s.ctx }

func (s *recordingStream) Send(message *pb.ConnectResponse) error {
	s.sent <- message
	return nil
}

// A gateway refuses a job of a pool that no update has named, and the job waits for its next attempt.
func TestTheFirstUpdateIsSentBeforeTheJobsThatWait(t *testing.T) {
	r := start(t)
	for i := range 16 { // a random choice would send the update first only sometimes
		ctx, stop := context.WithCancel(t.Context())
		stream := &recordingStream{ctx: ctx, sent: make(chan *pb.ConnectResponse, 8)}
		g, err := r.service.admit(stream, hello(fmt.Sprint("process-", i)))
		if err != nil {
			t.Fatal(err)
		}
		g.answer(ctx, &pb.ConnectResponse{Message: &pb.ConnectResponse_Job{Job: &pb.Job{Id: "job"}}})
		ended := make(chan error, 1)
		go func() { ended <- g.send(ctx) }()
		var kinds []string
		for m := range stream.sent {
			kinds = append(kinds, fmt.Sprintf("%T", m.GetMessage()))
			if m.GetJob() != nil {
				break
			}
		}
		stop()
		<-ended
		g.close()
		if want := []string{"*sluicev1.ConnectResponse_Welcome", "*sluicev1.ConnectResponse_Update", "*sluicev1.ConnectResponse_Job"}; !slices.Equal(kinds, want) {
			t.Fatalf("process %d is sent %v, want %v", i, kinds, want)
		}
	}
}
