package gateway

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// readyFor returns a gateway of the pool that has been ready for a time.
func readyFor(name string, since time.Duration) v1alpha1.Gateway {
	g := v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewaySpec{GatewayPool: "pool"}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
	return g
}

func served(target string, by ...string) *pb.Target {
	t := &pb.Target{Meta: &pb.ObjectMeta{Name: target}, Spec: &pb.TargetSpec{GatewayPool: "pool"}, Status: &pb.TargetStatus{}}
	for _, gateway := range by {
		t.Status.Paths = append(t.Status.Paths, &pb.TargetPath{Gateway: gateway, Applied: true})
	}
	return t
}

// session returns a session of host h with a target at a gateway, of this age.
func session(gateway, target string, age time.Duration) *pb.Session {
	return &pb.Session{Status: &pb.SessionStatus{Gateway: gateway, Target: target, Host: "h", Initiator: "iqn.h",
		LoginTime: timestamppb.New(time.Now().Add(-age))}}
}

func TestAHostIsStrandedThatHasNoPathButByTheGatewayThatGoes(t *testing.T) {
	a, b, third, fresh := readyFor("a", time.Hour), readyFor("b", time.Hour), readyFor("c", time.Hour), readyFor("a", time.Second)
	drained, broken := readyFor("a", time.Hour), readyFor("a", time.Hour)
	drained.Spec.Drain = true
	broken.Status.Conditions[0].Status = metav1.ConditionFalse
	here, there, late := session("b", "t", time.Hour), session("a", "t", time.Minute), session("a", "t", time.Second)
	elsewhere, another := session("a", "u", time.Minute), session("a", "t", time.Minute)
	another.Status.Initiator = "iqn.h2"
	both, three, unapplied := served("t", "a", "b"), served("t", "a", "b", "c"), served("t", "a", "b")
	unapplied.Status.Paths[0].Applied = false

	type gateways = []v1alpha1.Gateway
	type sessions = []*pb.Session
	for claim, c := range map[string]struct {
		pool     gateways
		target   *pb.Target
		sessions sessions
		want     bool
	}{
		"it has a session elsewhere":             {gateways{a, b}, both, sessions{here, there}, false},
		"it has none elsewhere":                  {gateways{a, b}, both, sessions{here}, true},
		"it has two here":                        {gateways{a, b}, both, sessions{here, here}, true},
		"it has none here":                       {gateways{a, b}, both, sessions{there}, false},
		"the other one has just begun":           {gateways{a, b}, both, sessions{here, late}, true},
		"the other gateway has just begun":       {gateways{fresh, b}, both, sessions{here, there}, true},
		"the other one is to another target":     {gateways{a, b}, both, sessions{here, elsewhere}, true},
		"the other one is another initiator's":   {gateways{a, b}, both, sessions{here, another}, true},
		"the other one is at one that drains":    {gateways{drained, b, third}, three, sessions{here, there}, true},
		"the other one is at one that is broken": {gateways{broken, b, third}, three, sessions{here, there}, true},
		"no other gateway exports the target":    {gateways{a, b}, served("t", "b"), sessions{here}, false},
		"no other one has applied it":            {gateways{a, b}, unapplied, sessions{here}, false},
		"the other one that exports it drains":   {gateways{drained, b}, both, sessions{here}, false},
	} {
		var want []Use
		if c.want {
			want = []Use{{"h", "iqn.h", "t"}}
		}
		if uses := Stranded(c.pool, []*pb.Target{c.target}, c.sessions)["b"]; !slices.Equal(uses, want) {
			t.Errorf("%s: %q", claim, uses)
		}
	}
}

// register is a control plane with a target and sessions, with one session on each page.
type register struct {
	pb.TargetServiceClient
	pb.SessionServiceClient
	target   *pb.Target
	sessions []*pb.Session
}

func (r *register) ListTargets(context.Context, *pb.ListTargetsRequest, ...grpc.CallOption) (*pb.ListTargetsResponse, error) {
	return &pb.ListTargetsResponse{Targets: []*pb.Target{r.target}}, nil
}

func (r *register) ListSessions(_ context.Context, asked *pb.ListSessionsRequest, _ ...grpc.CallOption) (*pb.ListSessionsResponse, error) {
	at := len(asked.GetOptions().GetPageToken())
	page := &pb.ListSessionsResponse{Sessions: r.sessions[at:min(at+1, len(r.sessions))]}
	if at+1 < len(r.sessions) {
		page.NextPageToken = asked.GetOptions().GetPageToken() + "."
	}
	return page, nil
}

func TestAGatewayIsNotSparedWhileHostsComeBackToTheOtherOne(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	here, there := session("b", "t", time.Hour), session("a", "t", time.Minute)
	for claim, c := range map[string]struct {
		back, drained time.Duration
		sessions      []*pb.Session
		want          bool
	}{
		"the other one is just back":                           {20 * time.Second, 0, []*pb.Session{here}, false},
		"the host has come back to it":                         {20 * time.Second, 0, []*pb.Session{here, there}, true},
		"the host has not come":                                {Patience + time.Second, 0, []*pb.Session{here}, true},
		"the other one came back while this one was drained":   {20 * time.Second, time.Minute, []*pb.Session{here}, false},
		"the other one was there before, as the pool has seen": {20 * time.Second, 10 * time.Second, []*pb.Session{here}, true},
	} {
		other, r := readyFor("a", c.back), readyFor("b", time.Hour)
		if c.drained > 0 {
			r.Status.Conditions[0].Status = metav1.ConditionFalse
			r.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-c.drained))
		}
		pool := &v1alpha1.GatewayPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
		plane := &register{target: served("t", "a", "b"), sessions: c.sessions}
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool, &other, &r).Build()
		g := &gateways{client: cluster, targets: plane, sessions: plane}
		have := &pb.Gateway{Status: &pb.GatewayStatus{
			Conditions: []*pb.Condition{{Type: v1alpha1.ConditionProgressing, Reason: reasonDrainBlocked}}}}
		if may, err := g.spare(t.Context(), &r, have); err != nil || may != c.want {
			t.Errorf("%s: spared %v, %v", claim, may, err)
		}
	}
}
