package leftovers

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// plane is a control plane with one target and one Host, which checks the preconditions of deletions as the real one does.
type plane struct {
	pb.TargetServiceClient
	pb.HostServiceClient
	is      *pb.ObjectMeta
	named   bool // a target names the Host
	deleted bool
}

func (p *plane) delete(options *pb.DeleteOptions) error {
	if options.GetUid() != p.is.GetUid() || options.GetResourceVersion() != 0 && options.GetResourceVersion() != p.is.GetResourceVersion() {
		return status.Error(codes.Aborted, "it has changed")
	}
	if p.named {
		return status.Error(codes.FailedPrecondition, "it is in use")
	}
	p.deleted = true
	return nil
}

func (p *plane) DeleteTarget(_ context.Context, r *pb.DeleteTargetRequest, _ ...grpc.CallOption) (*pb.DeleteTargetResponse, error) {
	return nil, p.delete(r.GetOptions())
}

func (p *plane) DeleteHost(_ context.Context, r *pb.DeleteHostRequest, _ ...grpc.CallOption) (*pb.DeleteHostResponse, error) {
	return nil, p.delete(r.GetOptions())
}

func ours(uid string, version int64) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: "csi.a", Uid: uid, ResourceVersion: version, Labels: map[string]string{LabelMadeBy: MadeBy}}
}

func TestATargetIsReleasedOnlyAsItWasReadAndEmpty(t *testing.T) {
	peoples := ours("one", 7)
	peoples.Labels = nil
	luns := &pb.TargetSpec{Luns: []*pb.TargetLun{{Volume: "v"}}}
	for what, c := range map[string]struct {
		read *pb.Target
		goes bool
	}{
		"empty":                     {&pb.Target{Meta: ours("one", 7)}, true},
		"changed since":             {&pb.Target{Meta: ours("one", 6)}, false},
		"another one":               {&pb.Target{Meta: ours("two", 7)}, false},
		"with a volume":             {&pb.Target{Meta: ours("one", 7), Spec: luns}, false},
		"made by people":            {&pb.Target{Meta: peoples}, false},
		"with a volume of people's": {&pb.Target{Meta: peoples, Spec: luns}, false},
	} {
		p := &plane{is: ours("one", 7)}
		if err := Release(t.Context(), p, c.read); err != nil || p.deleted != c.goes {
			t.Errorf("%s: deleted is %v, %v", what, p.deleted, err)
		}
	}
}

func TestAHostIsReleasedUnlessATargetNamesItOrPeopleMadeIt(t *testing.T) {
	peoples := ours("one", 7)
	peoples.Labels = nil
	for what, c := range map[string]struct {
		read        *pb.ObjectMeta
		named, goes bool
	}{
		"idle":           {ours("one", 7), false, true},
		"named":          {ours("one", 7), true, false},
		"another one":    {ours("two", 7), false, false},
		"made by people": {peoples, false, false},
	} {
		p := &plane{is: ours("one", 7), named: c.named}
		if err := ReleaseHost(t.Context(), p, &pb.Host{Meta: c.read}); err != nil || p.deleted != c.goes {
			t.Errorf("%s: deleted is %v, %v", what, p.deleted, err)
		}
	}
}
