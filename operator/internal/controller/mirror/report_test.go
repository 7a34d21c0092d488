package mirror

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestWhatTheControlPlaneJudgesIsNotReadyBeforeItHas(t *testing.T) {
	m := &Mirror[*v1alpha1.Gateway, *pb.Gateway]{Kind: Kind[*v1alpha1.Gateway, *pb.Gateway]{Judged: true}}
	r := &v1alpha1.Gateway{}
	seen := func(have *pb.Gateway) metav1.ConditionStatus {
		m.show(r, have)
		return apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady).Status
	}
	if is := seen(&pb.Gateway{Status: &pb.GatewayStatus{}}); is != metav1.ConditionUnknown {
		t.Errorf("before the control plane has looked: Ready is %s", is)
	}
	judged := &pb.Condition{Type: v1alpha1.ConditionReady, Status: pb.ConditionStatus_CONDITION_STATUS_TRUE}
	if is := seen(&pb.Gateway{Status: &pb.GatewayStatus{Conditions: []*pb.Condition{judged}}}); is != metav1.ConditionTrue {
		t.Errorf("found ready: Ready is %s", is)
	}
}

func TestWhatNobodyJudgesIsReadyOnceTheControlPlaneHasIt(t *testing.T) {
	m := &Mirror[*v1alpha1.Fabric, *pb.Fabric]{}
	r := &v1alpha1.Fabric{}
	m.show(r, &pb.Fabric{Status: &pb.FabricStatus{}})
	if !apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("conditions %+v", r.Status.Conditions)
	}
}

func TestWhatAKindTellsOfItsProgressStays(t *testing.T) {
	for _, c := range []struct {
		progresses bool
		want       string
	}{{true, "InProgress"}, {false, reasonSettled}} {
		m := &Mirror[*v1alpha1.GatewayPool, *pb.GatewayPool]{Kind: Kind[*v1alpha1.GatewayPool, *pb.GatewayPool]{Progresses: c.progresses}}
		r := &v1alpha1.GatewayPool{}
		Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionTrue, "InProgress", "a gateway is drained", 0)
		m.show(r, &pb.GatewayPool{Status: &pb.GatewayPoolStatus{}})
		if is := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionProgressing); is.Reason != c.want {
			t.Errorf("told by the kind is %v: %+v", c.progresses, is)
		}
	}
}
