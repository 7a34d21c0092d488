package gateway

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// operator/test covers, with real gateways, that a gateway with paths alone is expendable only while another one serves.
func TestAGatewayThatOwnsAVolumeIsSparedOnlyWhereRedundancyIsIgnored(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.Gateway{Spec: v1alpha1.GatewaySpec{GatewayPool: "pool"}}
	for _, c := range []struct {
		claim, reason string
		ignore, want  bool
	}{
		{"its drain is blocked", reasonDrainBlocked, false, false},
		{"redundancy is ignored", reasonDrainBlocked, true, true},
		{"its drain is under way", "Draining", true, false},
	} {
		pool := &v1alpha1.GatewayPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"},
			Spec: v1alpha1.GatewayPoolSpec{Rollout: v1alpha1.Rollout{IgnoreRedundancy: c.ignore}}}
		g := &gateways{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).Build()}
		have := &pb.Gateway{Status: &pb.GatewayStatus{VolumesOwned: 1,
			Conditions: []*pb.Condition{{Type: v1alpha1.ConditionProgressing, Reason: c.reason}}}}
		if may, err := g.spare(t.Context(), r, have); err != nil || may != c.want {
			t.Errorf("%s: spared %v, %v", c.claim, may, err)
		}
	}
}
