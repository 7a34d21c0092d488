package mirror

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestAKindWithAReadyConditionIsNotReadyBeforeItIsReported(t *testing.T) {
	m := &Mirror[*v1alpha1.Gateway, *pb.Gateway]{Managed: Managed[*v1alpha1.Gateway, *pb.Gateway]{HasReadyCondition: true}}
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

func TestAKindWithoutAReadyConditionIsReadyOnceItExists(t *testing.T) {
	m := &Mirror[*v1alpha1.Fabric, *pb.Fabric]{}
	r := &v1alpha1.Fabric{}
	m.show(r, &pb.Fabric{Status: &pb.FabricStatus{}})
	if !apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("conditions %+v", r.Status.Conditions)
	}
}

// reconcilePool reconciles a GatewayPool with these conditions once. Its After returns an error, which Reconcile returns if it
// repeats.
func reconcilePool(t *testing.T, after error, conditions ...metav1.Condition) (*v1alpha1.GatewayPool, error) {
	t.Helper()
	r := &v1alpha1.GatewayPool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Finalizers: []string{v1alpha1.Finalizer}}}
	r.Status.Conditions = conditions
	p := &plane[*pb.GatewayPool]{stored: &pb.GatewayPool{Status: &pb.GatewayPoolStatus{},
		Meta: &pb.ObjectMeta{Name: "p", Uid: "o", Labels: map[string]string{labelUID: "u"}}}}
	m := over(t, r, Managed[*v1alpha1.GatewayPool, *pb.GatewayPool]{
		Noun: p.noun(),
		Want: func(context.Context, *v1alpha1.GatewayPool, *SecretReader) (*pb.GatewayPool, error) {
			return &pb.GatewayPool{}, nil
		},
		After: func(context.Context, *v1alpha1.GatewayPool, *pb.GatewayPool) error { return after },
	})
	_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
	if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	return r, err
}

// since is before any reconciliation of these tests.
var since = metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

func readyAs(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: since}
}

func TestAResourceIsNotReadyWhileKubernetesRefusesAPartOfIt(t *testing.T) {
	budgets := kube.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	forbidden, busy := apierrors.NewForbidden(budgets, "p", errors.New("no right")), apierrors.NewTooManyRequests("later", 1)
	ready := readyAs(metav1.ConditionTrue, "AsBefore")
	for name, c := range map[string]struct {
		refusal error
		was     []metav1.Condition
		want    metav1.ConditionStatus
		reason  string
	}{
		"a new resource, for good":         {forbidden, nil, metav1.ConditionFalse, reasonRefused},
		"a ready resource, for good":       {forbidden, []metav1.Condition{ready}, metav1.ConditionFalse, reasonRefused},
		"what it needs is not there":       {apierrors.NewNotFound(budgets, "p"), []metav1.Condition{ready}, metav1.ConditionFalse, reasonRefused},
		"a new resource, for the moment":   {busy, nil, metav1.ConditionUnknown, reasonUnfinished},
		"a ready resource, for the moment": {busy, []metav1.Condition{ready}, metav1.ConditionTrue, "AsBefore"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reconcilePool(t, c.refusal, c.was...)
			if !errors.Is(err, c.refusal) {
				t.Errorf("reconciled: %v, want a retry for %v", err, c.refusal)
			}
			if condition := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); condition == nil || condition.Status != c.want || condition.Reason != c.reason {
				t.Errorf("Ready is %+v, want %s %s", condition, c.want, c.reason)
			}
		})
	}
}

// On its way to False, Ready is True for a moment, as in the control plane's object.
func TestAConditionWhoseStatusIsAsBeforeKeepsItsTransitionTime(t *testing.T) {
	for status, same := range map[metav1.ConditionStatus]bool{metav1.ConditionFalse: true, metav1.ConditionTrue: false} {
		r, err := reconcilePool(t, Problemf("GatewaysNotReady", "2 of 3"), readyAs(status, "GatewaysNotReady"))
		if err != nil {
			t.Fatal(err)
		}
		condition := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		if condition.Status != metav1.ConditionFalse || condition.LastTransitionTime.Equal(&since) != same {
			t.Errorf("before %s: %+v, want False, with the earlier time is %v", status, condition, same)
		}
	}
}

func TestTheProgressConditionOfAKindStays(t *testing.T) {
	for _, c := range []struct {
		progresses bool
		want       string
	}{{true, "InProgress"}, {false, reasonSettled}} {
		m := &Mirror[*v1alpha1.GatewayPool, *pb.GatewayPool]{Managed: Managed[*v1alpha1.GatewayPool, *pb.GatewayPool]{Progresses: c.progresses}}
		r := &v1alpha1.GatewayPool{}
		Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionTrue, "InProgress", "a gateway is drained", 0)
		m.show(r, &pb.GatewayPool{Status: &pb.GatewayPoolStatus{}})
		if condition := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionProgressing); condition.Reason != c.want {
			t.Errorf("reported by the kind is %v: %+v", c.progresses, condition)
		}
	}
}

func TestAConditionOfALongMessageEndsWithAWholeCharacter(t *testing.T) {
	r := &v1alpha1.GatewayPool{}
	Condition(r, v1alpha1.ConditionReady, metav1.ConditionFalse, "Invalid", "x"+strings.Repeat("ä", maxMessage), 0)
	message := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady).Message
	if !utf8.ValidString(message) || len(message) != maxMessage-1 { // "ä" has two bytes, of which one fits
		t.Errorf("the message has %d bytes and ends in %q", len(message), message[max(0, len(message)-4):])
	}
}

func TestAnEventOfALongMessageEndsWithAWholeCharacter(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	Tell(recorder, &v1alpha1.GatewayPool{}, corev1.EventTypeWarning, "Invalid", "x"+strings.Repeat("ä", maxEventNote))
	_, note, _ := strings.Cut(<-recorder.Events, "x")
	if !utf8.ValidString(note) || len("x"+note) != maxEventNote-1 { // "ä" has two bytes, of which one fits
		t.Errorf("the note has %d bytes and ends in %q", len("x"+note), note[max(0, len(note)-4):])
	}
}
