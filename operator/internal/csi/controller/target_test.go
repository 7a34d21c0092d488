package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// leaving is a control plane with one target, which is marked as deleted after this number of reads, and removed some reads
// later.
type leaving struct {
	pb.TargetServiceClient
	reads, deleted, gone int
}

func (l *leaving) read() *pb.Target {
	l.reads++
	target := &pb.Target{Meta: &pb.ObjectMeta{Name: "csi.a", Labels: map[string]string{labelMadeBy: madeBy, labelShares: "v"}}, Spec: &pb.TargetSpec{}}
	if l.reads > l.deleted {
		target.Meta.DeleteTime = timestamppb.Now()
	}
	return target
}

func (l *leaving) GetTarget(context.Context, *pb.GetTargetRequest, ...grpc.CallOption) (*pb.GetTargetResponse, error) {
	if target := l.read(); l.reads <= l.gone {
		return &pb.GetTargetResponse{Target: target}, nil
	}
	return nil, status.Error(codes.NotFound, "there is none")
}

func (l *leaving) ListTargets(context.Context, *pb.ListTargetsRequest, ...grpc.CallOption) (*pb.ListTargetsResponse, error) {
	return &pb.ListTargetsResponse{Targets: []*pb.Target{l.read()}}, nil
}

func (l *leaving) UpdateTarget(context.Context, *pb.UpdateTargetRequest, ...grpc.CallOption) (*pb.UpdateTargetResponse, error) {
	return nil, status.Error(codes.FailedPrecondition, "it is being deleted")
}

func TestAVolumeWhoseTargetIsBeingDeletedIsToBePublishedAgain(t *testing.T) {
	volume := &pb.Volume{Meta: &pb.ObjectMeta{Name: "v", Uid: "1"}, Spec: &pb.VolumeSpec{Pool: "p"}}
	for what, plane := range map[string]leaving{
		"when it is found":       {deleted: 0, gone: 9},
		"once it was found":      {deleted: 1, gone: 9},
		"and is gone since then": {deleted: 1, gone: 1},
	} {
		for _, shared := range []bool{false, true} {
			plane := plane
			s := &Service{targets: &plane}
			if _, err := s.show(t.Context(), volume, attachment.Node{Name: "n"}, "h", shared, false); status.Code(err) != codes.Aborted {
				t.Errorf("deleted %s, shared is %v: %v", what, shared, err)
			}
		}
	}
}

func TestATargetThatAResourceKeepsTakesNoVolume(t *testing.T) {
	p := publishedPlane()
	p.volume("v", map[string]string{labelTarget: people})
	p.target(people, map[string]string{labelUID: "1", labelResource: "storage/people"}, nil)
	_, created := p.service().CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "w",
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}},
		Parameters: map[string]string{"pool": "p", "target": people}})
	_, shown := p.service().show(t.Context(), p.volumes["v"], attachment.Node{Name: "n1"}, hostName("n1"), false, false)
	for _, c := range []struct {
		what string
		err  error
		code codes.Code
	}{{"create", created, codes.InvalidArgument}, {"publish", shown, codes.FailedPrecondition}} {
		if status.Code(c.err) != c.code || !strings.Contains(c.err.Error(), "Target resource storage/people") {
			t.Errorf("%s: %v", c.what, c.err)
		}
	}
	p.gone(t, people)
}

func TestATargetThatPeopleMadeTakesAVolume(t *testing.T) {
	p := publishedPlane()
	p.volume("v", map[string]string{labelTarget: people})
	p.target(people, nil, nil)
	if err := p.service().complete(t.Context(), &parameters{pool: "p", target: people}); err != nil {
		t.Error(err)
	}
	if _, err := p.service().show(t.Context(), p.volumes["v"], attachment.Node{Name: "n1"}, hostName("n1"), false, false); err != nil {
		t.Error(err)
	}
	if !has(p.targets[people], p.volumes["v"]) {
		t.Error("it is no LUN")
	}
}

// moving is a control plane whose only target, which waits for a volume, changes this number of times between a read and a
// change. The last time, another call may occupy it.
type moving struct {
	pb.TargetServiceClient
	target  *pb.Target
	changes int
	taken   bool
	made    string
}

func (m *moving) read() *pb.Target { return proto.Clone(m.target).(*pb.Target) }

func (m *moving) ListTargets(_ context.Context, r *pb.ListTargetsRequest, _ ...grpc.CallOption) (*pb.ListTargetsResponse, error) {
	if r.GetOptions().GetLabelSelector()[labelShares] != m.target.GetMeta().GetLabels()[labelShares] {
		return &pb.ListTargetsResponse{}, nil
	}
	return &pb.ListTargetsResponse{Targets: []*pb.Target{m.read()}}, nil
}

func (m *moving) GetTarget(_ context.Context, r *pb.GetTargetRequest, _ ...grpc.CallOption) (*pb.GetTargetResponse, error) {
	if r.GetName() != m.target.GetMeta().GetName() {
		return nil, status.Error(codes.NotFound, "there is none")
	}
	return &pb.GetTargetResponse{Target: m.read()}, nil
}

func (m *moving) UpdateTarget(_ context.Context, r *pb.UpdateTargetRequest, _ ...grpc.CallOption) (*pb.UpdateTargetResponse, error) {
	if m.changes > 0 {
		m.changes--
		m.target.Meta.ResourceVersion++
		if m.changes == 0 && m.taken {
			m.target.Meta.Labels[labelShares] = "another"
		}
	}
	if r.GetTarget().GetMeta().GetResourceVersion() != m.target.GetMeta().GetResourceVersion() {
		return nil, status.Error(codes.Aborted, "it has changed")
	}
	m.target = r.GetTarget()
	return &pb.UpdateTargetResponse{Target: m.read()}, nil
}

func (m *moving) CreateTarget(_ context.Context, r *pb.CreateTargetRequest, _ ...grpc.CallOption) (*pb.CreateTargetResponse, error) {
	m.made = r.GetTarget().GetMeta().GetName()
	return &pb.CreateTargetResponse{Target: r.GetTarget()}, nil
}

func TestATargetThatWaitsIsTakenThoughItChangesUnlessAnotherOwnerTookIt(t *testing.T) {
	for _, taken := range []bool{false, true} {
		plane := &moving{changes: 3, taken: taken, target: &pb.Target{Spec: &pb.TargetSpec{Paths: 2}, Meta: &pb.ObjectMeta{Name: "csi.shared.1",
			ResourceVersion: 7, Labels: map[string]string{labelMadeBy: madeBy, labelShares: noVolume}}}}
		got, err := (&Service{targets: plane}).sharedTarget(t.Context(), &pb.Target{Spec: &pb.TargetSpec{Paths: 2}, Meta: &pb.ObjectMeta{
			Name: "csi.shared.2", Labels: map[string]string{labelMadeBy: madeBy, labelShares: "v"}}})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{false: "csi.shared.1", true: "csi.shared.2"}[taken]; got.GetMeta().GetName() != want {
			t.Errorf("taken by another owner is %v: the volume is in %s", taken, got.GetMeta().GetName())
		}
		if (plane.made != "") != taken {
			t.Errorf("taken by another owner is %v: %q was made", taken, plane.made)
		}
	}
}

// holding is a control plane that has some LUN numbers of a removed target in quarantine.
type holding struct {
	pb.TargetServiceClient
	below int32
}

func (h *holding) GetTarget(context.Context, *pb.GetTargetRequest, ...grpc.CallOption) (*pb.GetTargetResponse, error) {
	return nil, status.Error(codes.NotFound, "there is none")
}

func (h *holding) CreateTarget(_ context.Context, r *pb.CreateTargetRequest, _ ...grpc.CallOption) (*pb.CreateTargetResponse, error) {
	if r.GetTarget().GetSpec().GetLuns()[0].GetId() >= h.below {
		return &pb.CreateTargetResponse{Target: r.GetTarget()}, nil
	}
	refused, err := status.New(codes.InvalidArgument, "held").WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "spec.luns[0].id", Description: "held"}}})
	if err != nil {
		return nil, err
	}
	return nil, refused.Err()
}

func TestATargetThatIsCreatedAgainTakesANumberThatNoHostMayKnow(t *testing.T) {
	wanted := &pb.Target{Meta: &pb.ObjectMeta{Name: "csi.a"}, Spec: &pb.TargetSpec{Luns: []*pb.TargetLun{{Id: 3, Volume: "v"}}}}
	made, err := (&Service{targets: &holding{below: 7}}).ensureTarget(t.Context(), wanted)
	if err != nil || made.GetSpec().GetLuns()[0].GetId() != 7 {
		t.Errorf("%v, %v", made, err)
	}
}
