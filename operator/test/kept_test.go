package test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// drivers is on all objects that the CSI driver makes.
var drivers = map[string]string{"app.kubernetes.io/managed-by": "csi.sluice.dev"}

func gone(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	return err != nil
}

func TestAPoolGoesWithTheTargetsAndHostsThatTheCSIDriverKeepsOnceNoneHasAVolume(t *testing.T) {
	targets, hosts := pb.NewTargetServiceClient(env.connection), pb.NewHostServiceClient(env.connection)
	pools := pb.NewGatewayPoolServiceClient(env.connection)
	fabrics(t)
	create(t, storagePool(t, "left"))
	disk := volume(t, "left", `{pool: left, size: 1Gi}`)
	create(t, disk)
	delivered(t, disk)
	pool := gatewayPool(t, "left", ", replicas: 0")
	create(t, pool)
	delivered(t, pool)
	noError := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	makeHost := func(name string, labels map[string]string) {
		t.Helper()
		_, err := hosts.CreateHost(t.Context(), &pb.CreateHostRequest{Host: &pb.Host{Meta: &pb.ObjectMeta{Name: name, Labels: labels},
			Spec: &pb.HostSpec{Initiators: []string{"iqn.2026-11.org.example:" + name}, AllowUnauthenticated: true}}})
		noError(err)
	}
	makeTarget := func(name, pool, host string, luns ...*pb.TargetLun) *pb.Target {
		t.Helper()
		made, err := targets.CreateTarget(t.Context(), &pb.CreateTargetRequest{Target: &pb.Target{
			Meta: &pb.ObjectMeta{Name: name, Labels: drivers}, Spec: &pb.TargetSpec{GatewayPool: pool, Hosts: []string{host}, Luns: luns}}})
		noError(err)
		return made.GetTarget()
	}
	for _, name := range []string{"csi.empty", "csi.used", "csi.other"} {
		makeHost(name, drivers)
	}
	makeHost("csi.peoples", nil)
	_, err := pools.CreateGatewayPool(t.Context(), &pb.CreateGatewayPoolRequest{GatewayPool: &pb.GatewayPool{
		Meta: &pb.ObjectMeta{Name: "other"}, Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red"}}}})
	noError(err)
	makeTarget("csi.other", "other", "csi.other")
	makeTarget("csi.empty", "left", "csi.empty")
	used := makeTarget("csi.used", "left", "csi.used", &pb.TargetLun{Volume: "shop.left"})

	noError(env.client.Delete(t.Context(), pool))
	ready(t, pool, metav1.ConditionFalse, "DeletionBlocked", "1 targets are exported by this pool (Target csi.used)")
	ready(t, pool, metav1.ConditionFalse, "DeletionBlocked", "end the pods")
	if _, err := targets.GetTarget(t.Context(), &pb.GetTargetRequest{Name: "csi.empty"}); err != nil {
		t.Errorf("while a volume needs the pool: %v", err) // its next volume would create another target, with other ports
	}
	eventually(t, func() error {
		used.Spec.Luns, used.Meta.ResourceVersion = nil, 0
		_, err := targets.UpdateTarget(t.Context(), &pb.UpdateTargetRequest{Target: used})
		return err
	})
	remove(t, pool)
	for _, name := range []string{"csi.empty", "csi.used"} {
		if _, err := targets.GetTarget(t.Context(), &pb.GetTargetRequest{Name: name}); !gone(t, err) {
			t.Errorf("target %s is there still", name)
		}
		if _, err := hosts.GetHost(t.Context(), &pb.GetHostRequest{Name: name}); !gone(t, err) {
			t.Errorf("host %s is there still", name)
		}
	}
	_, err = targets.DeleteTarget(t.Context(), &pb.DeleteTargetRequest{Name: "csi.other"})
	noError(err)
	eventually(t, func() error {
		_, err := pools.DeleteGatewayPool(t.Context(), &pb.DeleteGatewayPoolRequest{Name: "other"})
		return err
	})
	for _, name := range []string{"csi.other", "csi.peoples"} {
		_, err := hosts.DeleteHost(t.Context(), &pb.DeleteHostRequest{Name: name})
		noError(err)
	}
}
