package mirror

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// found is a control plane that has these findings, in pages of one.
type found struct {
	pb.FindingServiceClient
	all    []*pb.Finding
	failed error
}

func (f *found) ListFindings(_ context.Context, r *pb.ListFindingsRequest, _ ...grpc.CallOption) (*pb.ListFindingsResponse, error) {
	if f.failed != nil {
		return nil, f.failed
	}
	at := len(r.GetPageToken())
	response := &pb.ListFindingsResponse{}
	if at < len(f.all) {
		response.Findings = f.all[at : at+1]
	}
	if at+1 < len(f.all) {
		response.NextPageToken = "xxxxxxxx"[:at+1]
	}
	return response, nil
}

func aboutPool(id string, severity pb.FindingSeverity) *pb.Finding {
	return &pb.Finding{Id: id, Severity: severity, Cause: "is " + id, Remedy: "repair it", Link: "docs/RUNBOOK.md",
		Object: &pb.ObjectReference{Kind: "GatewayPool", Name: "p"}}
}

const (
	warning  = pb.FindingSeverity_FINDING_SEVERITY_WARNING
	critical = pb.FindingSeverity_FINDING_SEVERITY_CRITICAL
)

// reconciledWith returns a GatewayPool that was reconciled with the findings of a control plane.
func reconciledWith(t *testing.T, f *Findings, conditions ...metav1.Condition) *v1alpha1.GatewayPool {
	t.Helper()
	r := &v1alpha1.GatewayPool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Finalizers: []string{v1alpha1.Finalizer}}}
	r.Status.Conditions = conditions
	p := &plane[*pb.GatewayPool]{stored: &pb.GatewayPool{Status: &pb.GatewayPoolStatus{},
		Meta: &pb.ObjectMeta{Name: "p", Uid: "o", Labels: map[string]string{labelUID: "u"}}}}
	noun := p.noun()
	noun.Kind = "GatewayPool"
	m := over(t, r, Managed[*v1alpha1.GatewayPool, *pb.GatewayPool]{Noun: noun,
		Want: func(context.Context, *v1alpha1.GatewayPool, *SecretReader) (*pb.GatewayPool, error) {
			return &pb.GatewayPool{}, nil
		}})
	m.findings = f
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)}); err != nil {
		t.Fatal(err)
	}
	if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheWorstFindingDecidesWhetherAResourceIsHealthyAndReady(t *testing.T) {
	for _, c := range []struct {
		findings       []*pb.Finding
		healthy, ready metav1.ConditionStatus
		reason         string
	}{
		{nil, metav1.ConditionTrue, metav1.ConditionTrue, "NoFinding"},
		{[]*pb.Finding{aboutPool("Slow", warning)}, metav1.ConditionFalse, metav1.ConditionTrue, "Slow"},
		{[]*pb.Finding{aboutPool("Slow", warning), aboutPool("Gone", critical)}, metav1.ConditionFalse, metav1.ConditionFalse, "Gone"},
		{[]*pb.Finding{{Id: "Gone", Severity: critical, Object: &pb.ObjectReference{Kind: "GatewayPool", Name: "other"}}},
			metav1.ConditionTrue, metav1.ConditionTrue, "NoFinding"},
	} {
		r := reconciledWith(t, &Findings{service: &found{all: c.findings}})
		healthy := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionHealthy)
		ready := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		if healthy.Status != c.healthy || ready.Status != c.ready || healthy.Reason != c.reason {
			t.Errorf("%v:\nHealthy %+v\nReady %+v", c.findings, healthy, ready)
		}
		if c.ready == metav1.ConditionFalse && (ready.Reason != c.reason || ready.Message != "is Gone; remedy: repair it; docs/RUNBOOK.md") {
			t.Errorf("Ready %+v", ready)
		}
	}
}

func TestWithoutFindingsTheConditionsStayThoseOfTheObject(t *testing.T) {
	for _, code := range []codes.Code{codes.Unimplemented, codes.Unavailable} {
		was := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: "Slow", LastTransitionTime: since}
		r := reconciledWith(t, &Findings{service: &found{failed: status.Error(code, "no")}}, was)
		if healthy := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionHealthy); healthy == nil || healthy.Reason != "Slow" {
			t.Errorf("%s: Healthy %+v", code, healthy)
		}
		if !apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("%s: %+v", code, r.Status.Conditions)
		}
	}
}

func TestAResourceIsReconciledWhenItsFindingBeginsChangesAndEnds(t *testing.T) {
	service := &found{}
	f := &Findings{service: service, followers: map[string][]func(string){}}
	var told []string
	f.follow("GatewayPool", func(name string) { told = append(told, name) })
	f.follow("Volume", func(name string) { t.Errorf("volume %s", name) })
	for _, step := range []struct {
		what string
		all  []*pb.Finding
		want []string
	}{
		{"nothing is wrong", nil, nil},
		{"it begins", []*pb.Finding{aboutPool("Slow", warning)}, []string{"p"}},
		{"it goes on", []*pb.Finding{aboutPool("Slow", warning)}, nil},
		{"another one is worse", []*pb.Finding{aboutPool("Slow", warning), aboutPool("Gone", critical)}, []string{"p"}},
		{"it ends", nil, []string{"p"}},
	} {
		told, service.all = nil, step.all
		if err := f.renew(t.Context()); err != nil || !slices.Equal(told, step.want) {
			t.Errorf("%s: %v %v", step.what, told, err)
		}
	}
}
