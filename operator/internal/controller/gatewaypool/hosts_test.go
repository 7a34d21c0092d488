package gatewaypool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// rollout is a pool of two gateways during a rollout: the first has the new template, the second is next. Both export a target to
// one host.
type rollout struct {
	pb.TargetServiceClient
	pb.SessionServiceClient
	t        *testing.T
	pools    *pools
	pool     *v1alpha1.GatewayPool
	events   *events.FakeRecorder
	sessions []*pb.Session
	failure  error // the error of the call for sessions
	lacking  bool  // the target has only one of its two paths
}

func (o *rollout) ListTargets(context.Context, *pb.ListTargetsRequest, ...grpc.CallOption) (*pb.ListTargetsResponse, error) {
	if o.lacking {
		return &pb.ListTargetsResponse{Targets: []*pb.Target{{Meta: &pb.ObjectMeta{Name: "shop.t"},
			Spec: &pb.TargetSpec{GatewayPool: "pool", Paths: 2}, Status: &pb.TargetStatus{
				Paths: []*pb.TargetPath{{Gateway: "pool-0", Applied: true}}}}}}, nil
	}
	return &pb.ListTargetsResponse{Targets: []*pb.Target{{Meta: &pb.ObjectMeta{Name: "shop.t"},
		Spec: &pb.TargetSpec{GatewayPool: "pool", Paths: 2}, Status: &pb.TargetStatus{
			Paths:      []*pb.TargetPath{{Gateway: "pool-0", Applied: true}, {Gateway: "pool-1", Applied: true}},
			Conditions: []*pb.Condition{{Type: v1alpha1.ConditionPathsRedundant, Status: pb.ConditionStatus_CONDITION_STATUS_TRUE}},
		}}}}, nil
}

func (o *rollout) ListSessions(context.Context, *pb.ListSessionsRequest, ...grpc.CallOption) (*pb.ListSessionsResponse, error) {
	return &pb.ListSessionsResponse{Sessions: o.sessions}, o.failure
}

// login logs the host in at a gateway.
func (o *rollout) login(gateway string) { o.loginOf("iqn.web", gateway) }

func (o *rollout) loginOf(initiator, gateway string) {
	o.sessions = append(o.sessions, &pb.Session{Status: &pb.SessionStatus{Gateway: gateway, Target: "shop.t", Host: "shop.web",
		Initiator: initiator, LoginTime: timestamppb.Now()}})
}

// logout ends all sessions at a gateway.
func (o *rollout) logout(gateway string) {
	o.sessions = slices.DeleteFunc(o.sessions, func(s *pb.Session) bool { return s.GetStatus().GetGateway() == gateway })
}

// change changes a gateway, and sets the time of its readiness if that changes.
func (o *rollout) change(name, image string, ready metav1.ConditionStatus) {
	o.t.Helper()
	g := &v1alpha1.Gateway{}
	if err := o.pools.client.Get(o.t.Context(), client.ObjectKey{Name: name}, g); err != nil {
		o.t.Fatal(err)
	}
	g.Spec.Template.Image = image
	g.Status.Template = gateway.Digest(&g.Spec)
	apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: ready})
	if err := o.pools.client.Update(o.t.Context(), g); err != nil {
		o.t.Fatal(err)
	}
}

// replaced takes the first gateway, which is next, out of service for a while, and returns it.
func (o *rollout) replaced(after time.Duration) {
	o.t.Helper()
	first := &v1alpha1.Gateway{}
	_, _, err := o.look()
	if get := o.pools.client.Get(o.t.Context(), client.ObjectKey{Name: "pool-0"}, first); get != nil || err != nil ||
		first.Spec.Template.Image != "sluice:2" {
		o.t.Fatalf("the first gateway is not taken: %v, %v", err, get)
	}
	o.logout("pool-0")
	o.change("pool-0", "sluice:2", metav1.ConditionFalse)
	time.Sleep(after)
	if taken, condition, err := o.look(); taken || err != nil || condition.Reason != "InProgress" {
		o.t.Errorf("while one is away: taken %v, %v, %+v", taken, err, condition)
	}
	o.change("pool-0", "sluice:2", metav1.ConditionTrue)
}

func halfWay(t *testing.T, how v1alpha1.Rollout) *rollout {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), policyv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	o := &rollout{t: t, events: events.NewFakeRecorder(8), pool: &v1alpha1.GatewayPool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", UID: "p"},
		Spec:       v1alpha1.GatewayPoolSpec{Replicas: 2, Rollout: how, Template: v1alpha1.GatewayTemplate{Image: "sluice:2"}}}}
	made := fake.NewClientBuilder().WithScheme(scheme)
	for name, image := range map[string]string{"pool-0": "sluice:2", "pool-1": "sluice:1"} {
		g := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewaySpec{GatewayPool: "pool",
			Template: v1alpha1.GatewayTemplate{Image: image}}, Status: v1alpha1.GatewayStatus{Health: "Ready"}}
		g.Status.Template = gateway.Digest(&g.Spec)
		apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue})
		made.WithObjects(g)
	}
	o.pools = &pools{client: made.Build(), targets: o, sessions: o, recorder: o.events}
	o.login("pool-1")
	return o
}

// look reconciles the pool once. It returns whether the next gateway was taken, and the condition Progressing.
func (o *rollout) look() (taken bool, condition *metav1.Condition, err error) {
	o.t.Helper()
	gateways, err := o.pools.gateways(o.t.Context(), o.pool)
	if err != nil {
		o.t.Fatal(err)
	}
	err = o.pools.rollOut(o.t.Context(), o.pool, gateways)
	next := &v1alpha1.Gateway{}
	if err := o.pools.client.Get(o.t.Context(), client.ObjectKey{Name: "pool-1"}, next); err != nil {
		o.t.Fatal(err)
	}
	condition = apimeta.FindStatusCondition(o.pool.Status.Conditions, v1alpha1.ConditionProgressing)
	return next.Spec.Template.Image == "sluice:2", condition, err
}

// waits asserts that the pool waits for the host, and reports that.
func (o *rollout) waits(when string) {
	o.t.Helper()
	taken, condition, err := o.look()
	var later *mirror.RequeueAfter
	if taken || !errors.As(err, &later) || condition.Reason != "WaitsForHosts" ||
		!strings.Contains(condition.Message, "host shop.web (iqn.web) on target shop.t") {
		o.t.Errorf("%s: taken %v, %v, %+v", when, taken, err, condition)
	}
}

// goesOn asserts that the next gateway is taken, and which Event reports it; empty: none.
func (o *rollout) goesOn(when, event string) {
	o.t.Helper()
	if taken, condition, err := o.look(); !taken || err != nil || condition.Reason != "InProgress" {
		o.t.Errorf("%s: taken %v, %v, %+v", when, taken, err, condition)
	}
	message := ""
	select {
	case message = <-o.events.Events:
	default:
	}
	if event == "" && message != "" || !strings.Contains(message, event) {
		o.t.Errorf("%s: event %q", when, message)
	}
}

func TestARolloutWaitsUntilAHostIsBackAtTheGatewayBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.waits("before it has logged in")
		time.Sleep(30 * time.Second)
		o.login("pool-0")
		o.waits("before its multipath has looked at the path")
		time.Sleep(10 * time.Second)
		o.goesOn("with two paths", "")
	})
}

func TestARolloutGoesOnWithoutAHostThatHasOnePathOnlyAndNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.waits("at first")
		time.Sleep(gateway.Patience - time.Second)
		o.waits("in the last second")
		time.Sleep(time.Second)
		o.goesOn("after that", "HostsLosePath giving gateway pool-1 the new template: hosts are not waited for any longer that have "+
			"no path by another gateway: host shop.web (iqn.web) on target shop.t")
	})
}

// A host may have an initiator for each of its adapters, with one path each: the operator does not know that these belong
// together.
func TestInitiatorsThatHaveOnePathEachAreWaitedForOnceAndNotAtEachGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.change("pool-0", "sluice:1", metav1.ConditionTrue) // a rollout that has not begun
		o.loginOf("iqn.other", "pool-0")
		if taken, condition, err := o.look(); taken || condition.Reason != "WaitsForHosts" || !strings.Contains(condition.Message, "(iqn.other)") {
			t.Fatalf("taken %v, %v, %+v", taken, err, condition)
		}
		time.Sleep(gateway.Patience)
		o.replaced(20 * time.Second)
		<-o.events.Events // the event of the first one
		o.loginOf("iqn.other", "pool-0")
		o.goesOn("with the second gateway at once", "HostsLosePath giving gateway pool-1 the new template: hosts are not waited for any "+
			"longer that have no path by another gateway: host shop.web (iqn.web) on target shop.t")
	})
}

func TestARolloutWaitsForAHostThatLosesAPathAlthoughOthersHadTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.change("pool-0", "sluice:1", metav1.ConditionTrue)
		o.login("pool-0")
		o.loginOf("iqn.other", "pool-0")
		time.Sleep(time.Minute)
		_, _, _ = o.look()
		time.Sleep(gateway.Patience)
		o.replaced(gateway.Patience) // the time of no host runs while it is away
		<-o.events.Events
		o.waits("when its other path is gone")
		time.Sleep(gateway.Patience - time.Second)
		o.waits("in the last second")
		o.login("pool-0")
		time.Sleep(10 * time.Second)
		o.goesOn("with two paths", "")
	})
}

func TestHostsThatArriveOneAfterTheOtherDelayNoRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.waits("at first")
		for n := range 3 {
			time.Sleep(gateway.Patience / 4)
			o.loginOf(fmt.Sprintf("iqn.short-lived-%d", n), "pool-1")
			o.waits("with another one")
		}
		time.Sleep(gateway.Patience / 4)
		o.goesOn("after the time for one gateway", "HostsLosePath")
	})
}

func TestTheWaitForAHostRestartsWhenAGatewayGoesBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.change("pool-0", "sluice:1", metav1.ConditionTrue)
		time.Sleep(time.Minute) // its only path is to the second gateway; the first one is taken at once
		o.replaced(gateway.Patience)
		o.waits("though it was seen with one path before")
		time.Sleep(gateway.Patience)
		o.goesOn("after that", "HostsLosePath")
	})
}

func TestAPoolThatWaitsForHostsIsNoWorseForIt(t *testing.T) {
	o := halfWay(t, v1alpha1.Rollout{})
	err := o.pools.after(t.Context(), o.pool, nil)
	var later *mirror.RequeueAfter
	if degraded := apimeta.FindStatusCondition(o.pool.Status.Conditions, v1alpha1.ConditionDegraded); !errors.As(err, &later) ||
		degraded == nil || degraded.Reason != "AllGateways" {
		t.Errorf("%v, %+v", err, o.pool.Status.Conditions)
	}
}

func TestHostsAreWaitedForAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.waits("at first")
		o.pool.Spec.Rollout.Paused = true
		time.Sleep(time.Hour)
		if taken, condition, err := o.look(); taken || err != nil || condition.Reason != "Paused" {
			t.Errorf("taken %v, %v, %+v", taken, err, condition)
		}
		o.pool.Spec.Rollout.Paused = false
		o.waits("after the pause")
	})
}

func TestNoHostIsWaitedForWhereRedundancyIsIgnored(t *testing.T) {
	o := halfWay(t, v1alpha1.Rollout{IgnoreRedundancy: true})
	o.goesOn("at once", "")
}

func TestNoHostIsWaitedForThatIsInTheRegisterOfADeadGateway(t *testing.T) {
	o := halfWay(t, v1alpha1.Rollout{})
	next := &v1alpha1.Gateway{}
	if err := o.pools.client.Get(t.Context(), client.ObjectKey{Name: "pool-1"}, next); err != nil {
		t.Fatal(err)
	}
	next.Status.Health = "Dead"
	if err := o.pools.client.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	o.goesOn("at once", "")
}

func TestATimeThatIsOverStaysOverWhereAStepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := halfWay(t, v1alpha1.Rollout{})
		o.waits("at first")
		time.Sleep(gateway.Patience)
		gateways, err := o.pools.gateways(t.Context(), o.pool)
		if err != nil {
			t.Fatal(err)
		}
		gateways[1].ResourceVersion = "1" // the cache is out of date
		if err := o.pools.rollOut(t.Context(), o.pool, gateways); !apierrors.IsConflict(err) {
			t.Errorf("taken by a version that was replaced: %v", err)
		}
		o.goesOn("with the newest version", "HostsLosePath")
	})
}

func TestARolloutDoesNotGoOnWhereSessionsAreNotKnown(t *testing.T) {
	o := halfWay(t, v1alpha1.Rollout{})
	o.failure = errors.New("the control plane is away")
	if taken, _, err := o.look(); taken || !errors.Is(err, o.failure) {
		t.Errorf("taken %v, %v", taken, err)
	}
}

func TestABlockedRolloutIsCheckedAgainWithinSeconds(t *testing.T) {
	o := halfWay(t, v1alpha1.Rollout{})
	o.lacking = true
	taken, _, err := o.look()
	var problem *mirror.Problem
	if taken || !errors.As(err, &problem) || problem.Reason != "RolloutBlocked" || problem.Wait != hostsPollInterval {
		t.Errorf("taken %v, %+v", taken, err)
	}
}
