package csi_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
)

func TestANodesHostGoesWithItsLastVolume(t *testing.T) {
	node, host := nodeID("node-4"), "csi.node-4"
	first, second := create(t, "last-first", alone, nil), create(t, "last-second", alone, nil)
	found := published(t, first, node, alone)
	published(t, second, node, alone)
	unpublish(t, first, node)
	admits(t, targetOf(t, found), second, host)
	unpublish(t, second, node)
	if hostThere(t, host) {
		t.Errorf("%s may log in still", host)
	}
	if left := targetOf(t, found); len(left.GetSpec().GetHosts()) > 0 {
		t.Errorf("target %s lets in %v", left.GetMeta().GetName(), left.GetSpec().GetHosts())
	}
	admits(t, targetOf(t, published(t, first, node, alone)), first, host)
}

func TestANodesHostStaysWhileAVolumeOfAnotherTargetIsPublished(t *testing.T) {
	node, host := nodeID("node-5"), "csi.node-5"
	own, common := create(t, "other-own", alone, nil), create(t, "other-shared", shared, nil)
	found := published(t, common, node, shared)
	published(t, own, node, alone)
	unpublish(t, own, node)
	admits(t, targetOf(t, found), common, host)
	unpublish(t, common, node)
	if hostThere(t, host) {
		t.Errorf("%s may log in still", host)
	}
}

func TestAHostThatPeopleMadeIsTakenFromTheTargetAndStays(t *testing.T) {
	node := nodeID("node-6")
	if _, err := hosts().CreateHost(t.Context(), &pb.CreateHostRequest{Host: &pb.Host{Meta: &pb.ObjectMeta{Name: "people"},
		Spec: &pb.HostSpec{Initiators: []string{"iqn.2026-11.dev.sluice:csi-node-6"}, AllowUnauthenticated: true}}}); err != nil {
		t.Fatal(err)
	}
	id := create(t, "peoples", alone, nil)
	found := published(t, id, node, alone)
	admits(t, targetOf(t, found), id, "people")
	unpublish(t, id, node)
	if left := targetOf(t, found); len(left.GetSpec().GetHosts()) > 0 {
		t.Errorf("target %s lets in %v", left.GetMeta().GetName(), left.GetSpec().GetHosts())
	}
	if _, err := hosts().DeleteHost(t.Context(), &pb.DeleteHostRequest{Name: "people"}); err != nil {
		t.Error(err)
	}
}

// rounds of calls that race.
const rounds = 30

// meanwhile runs two functions concurrently.
func meanwhile(one, other func()) {
	var both sync.WaitGroup
	both.Go(one)
	both.Go(other)
	both.Wait()
}

func TestAVolumeThatComesWhileTheNodesLastOneGoesIsThereForTheNode(t *testing.T) {
	node, host := nodeID("node-7"), "csi.node-7"
	for name, parameters := range map[string]map[string]string{"own": nil, "named": {"target": "cluster"}} {
		going, coming := create(t, name+"-one", alone, parameters), create(t, name+"-two", alone, parameters)
		published(t, going, node, alone)
		for range rounds {
			var found map[string]string
			var err error
			meanwhile(func() { unpublish(t, going, node) }, func() { found, err = publish(t, coming, node, alone, nil) })
			if err != nil {
				t.Fatal(err)
			}
			admits(t, targetOf(t, found), coming, host)
			going, coming = coming, going
		}
		unpublish(t, going, node)
	}
	if hostThere(t, host) {
		t.Errorf("%s may log in still", host)
	}
}

func TestOfTwoLastVolumesThatGoAtOnceNoneLeavesTheHostInATargetThatPeopleMade(t *testing.T) {
	node, host := nodeID("node-8"), "csi.node-8"
	parameters := map[string]string{"target": "cluster"}
	one, two := create(t, "at-once-one", alone, parameters), create(t, "at-once-two", alone, parameters)
	for range rounds {
		found := published(t, one, node, alone)
		published(t, two, node, alone)
		meanwhile(func() { unpublish(t, one, node) }, func() { unpublish(t, two, node) })
		if slices.Contains(targetOf(t, found).GetSpec().GetHosts(), host) {
			t.Fatal("the node may log in to the target still")
		}
	}
}

// released deletes the driver's targets without volumes, and Hosts that no target names, as the operator does when a gateway pool
// is deleted, until the context ends. It calls first after it has deleted the first target.
func released(t *testing.T, ctx context.Context, first func()) (count int) {
	for ctx.Err() == nil {
		made := &pb.ListOptions{LabelSelector: madeBy}
		for target, err := range client.All(t.Context(), targets().ListTargets, &pb.ListTargetsRequest{Options: made},
			(*pb.ListTargetsResponse).GetTargets) {
			if err != nil {
				t.Error(err)
				return count
			}
			meta := target.GetMeta()
			if len(target.GetSpec().GetLuns()) > 0 || meta.GetDeleteTime() != nil {
				continue
			}
			_, err := targets().DeleteTarget(t.Context(), &pb.DeleteTargetRequest{Name: meta.GetName(), Options: &pb.DeleteOptions{
				Uid: meta.GetUid(), ResourceVersion: meta.GetResourceVersion()}})
			if err == nil {
				count++
				first()
			}
		}
		for host, err := range client.All(t.Context(), hosts().ListHosts, &pb.ListHostsRequest{Options: made}, (*pb.ListHostsResponse).GetHosts) {
			if err != nil {
				t.Error(err)
				return count
			}
			// It is refused if a target names it.
			_, _ = hosts().DeleteHost(t.Context(), &pb.DeleteHostRequest{Name: host.GetMeta().GetName()})
		}
	}
	return count
}

func TestAVolumeThatComesWhileItsTargetIsReleasedHasATargetInTheEnd(t *testing.T) {
	node, host := nodeID("node-9"), "csi.node-9"
	count := 0
	for id, as := range map[string]*csi.VolumeCapability{
		create(t, "released-own", alone, nil): alone, create(t, "released-shared", shared, nil): shared} {
		for round := range rounds {
			var found map[string]string
			var err error
			ctx, stop := context.WithCancel(t.Context())
			begun, begin := context.WithCancel(t.Context())
			meanwhile(func() { count += released(t, ctx, begin) }, func() {
				defer stop()
				if round%2 == 1 { // it is about to be deleted
					<-begun.Done()
				}
				for err = errTryAgain; status.Code(err) == codes.Aborted; { // as the attacher does
					found, err = publish(t, id, node, as, nil)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			target := targetOf(t, found)
			admits(t, target, id, host)
			if target.GetMeta().GetDeleteTime() != nil {
				t.Errorf("target %s is being deleted under volume %s", target.GetMeta().GetName(), id)
			}
			unpublish(t, id, node)
		}
	}
	if count == 0 {
		t.Error("no target was released")
	}
}

var errTryAgain = status.Error(codes.Aborted, "not tried yet")

func TestAnUnpublishThatWasGivenUpStillWaitsForTheGateways(t *testing.T) {
	for name, as := range map[string]*csi.VolumeCapability{"own": alone, "shared": shared} {
		id := create(t, "given-up-"+name, as, nil)
		found := published(t, id, here, as)
		heal, err := env.Network.Partition(cluster.ControlNode, cluster.GatewayName(1), cluster.Internal)
		if err != nil {
			t.Fatal(err)
		}
		heal = sync.OnceValue(heal)
		t.Cleanup(func() {
			if err := heal(); err != nil {
				t.Error(err)
			}
			if err := env.WaitReady(background); err != nil {
				t.Error(err)
			}
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := env.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: here})
			cancel()
			if found := health(t, cluster.GatewayName(1)); err == nil && found != pb.GatewayHealth_GATEWAY_HEALTH_DEAD {
				t.Errorf("volume %s is reported as gone, and a gateway that did not hear of it is %s", id, found)
			}
		}
		if err := heal(); err != nil {
			t.Fatal(err)
		}
		if err := env.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		unpublish(t, id, here)
		if target := targetOf(t, found); shows(target, id) {
			t.Errorf("target %s has volume %s still", target.GetMeta().GetName(), id)
		}
	}
}

func health(t *testing.T, gateway string) pb.GatewayHealth {
	t.Helper()
	got, err := pb.NewGatewayServiceClient(env.Connection()).GetGateway(t.Context(), &pb.GetGatewayRequest{Name: gateway})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetGateway().GetStatus().GetHealth()
}
