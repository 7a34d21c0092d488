package csi_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// madeBy is on all objects that the driver makes.
var madeBy = map[string]string{"app.kubernetes.io/managed-by": "csi.sluice.dev"}

const iqns = "iqn.2026-11.dev.sluice:" // followed by the target's name

func targets() pb.TargetServiceClient { return pb.NewTargetServiceClient(env.Connection()) }
func hosts() pb.HostServiceClient     { return pb.NewHostServiceClient(env.Connection()) }

// targetOf returns the target in which a volume was published.
func targetOf(t *testing.T, found map[string]string) *pb.Target {
	t.Helper()
	for target, err := range client.All(t.Context(), targets().ListTargets, &pb.ListTargetsRequest{}, (*pb.ListTargetsResponse).GetTargets) {
		if err != nil {
			t.Fatal(err)
		}
		if target.GetSpec().GetIqn() == found["iqn"] {
			return target
		}
	}
	t.Fatalf("no target is %s", found["iqn"])
	return nil
}

func shows(target *pb.Target, volume string) bool {
	return slices.ContainsFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool { return lun.GetVolume() == volume })
}

// admits checks that a target has a volume and admits an existing host.
func admits(t *testing.T, target *pb.Target, volume, host string) {
	t.Helper()
	if !shows(target, volume) || !slices.Contains(target.GetSpec().GetHosts(), host) {
		t.Errorf("target %s has not volume %s for host %s: %v", target.GetMeta().GetName(), volume, host, target.GetSpec())
	}
	if !hostThere(t, host) {
		t.Errorf("host %s is not there", host)
	}
}

func hostThere(t *testing.T, name string) bool {
	t.Helper()
	_, err := hosts().GetHost(t.Context(), &pb.GetHostRequest{Name: name})
	if err != nil && !client.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// stored creates a target without the driver; it is removed with the test.
func stored(t *testing.T, target *pb.Target) {
	t.Helper()
	if _, err := targets().CreateTarget(t.Context(), &pb.CreateTargetRequest{Target: target}); err != nil {
		t.Fatal(err)
	}
	name := target.GetMeta().GetName()
	t.Cleanup(func() {
		if _, err := targets().DeleteTarget(background, &pb.DeleteTargetRequest{Name: name}); err != nil {
			t.Error(err)
		}
	})
}
