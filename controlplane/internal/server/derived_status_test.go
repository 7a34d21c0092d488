package server_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// follow runs the view until the test ends, and waits until it has what the store has now.
func (s *system) follow() {
	s.t.Helper()
	s.background(s.view.Run)
	select {
	case <-s.view.Ready():
	case <-s.t.Context().Done():
	}
}

func TestAVolumeAndItsRequestedMoveNameTheirGateways(t *testing.T) {
	s := start(t)
	s.shortest()
	admin := s.as("admin")
	gateway, err := pb.NewGatewayServiceClient(admin).GetGateway(t.Context(), &pb.GetGatewayRequest{Name: "gw-1"})
	if err != nil {
		t.Fatal(err)
	}
	number := gateway.GetGateway().GetStatus().GetNumber()
	storetest.During(t, s.store, func(term *store.Term) {
		_, err := storetest.Modify(t.Context(), term, "orders", func(v *model.Volume) (bool, error) {
			v.Status.Ownership.State, v.Status.Ownership.Owner = model.Owned, model.GatewayRef{Number: number, Incarnation: "i"}
			v.Status.MoveRequest = &model.MoveRequest{Gateway: number}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	s.follow()
	got, err := pb.NewVolumeServiceClient(admin).GetVolume(t.Context(), &pb.GetVolumeRequest{Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	shown := got.GetVolume().GetStatus()
	if shown.GetOwner() != "gw-1" || shown.GetOwnerGateway() != number {
		t.Errorf("the owner is %q, %d, want gw-1, %d", shown.GetOwner(), shown.GetOwnerGateway(), number)
	}
	if move := shown.GetRequestedMove(); move.GetGatewayName() != "gw-1" || move.GetGateway() != number {
		t.Errorf("the requested move is %v, want gw-1, %d", move, number)
	}
}

func TestAFabricCountsItsPortalsAndTheHostsOnItsSwitches(t *testing.T) {
	s := start(t)
	admin := s.as("admin")
	fabrics := pb.NewFabricServiceClient(admin)
	for _, name := range []string{"red", "blue"} {
		fabric := &pb.Fabric{Meta: named(name), Spec: &pb.FabricSpec{Switches: []string{"s1"}}}
		if _, err := fabrics.CreateFabric(t.Context(), &pb.CreateFabricRequest{Fabric: fabric}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pb.NewGatewayPoolServiceClient(admin).CreateGatewayPool(t.Context(), &pb.CreateGatewayPoolRequest{
		GatewayPool: &pb.GatewayPool{Meta: named("default"), Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red", "blue"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewGatewayServiceClient(admin).CreateGateway(t.Context(), &pb.CreateGatewayRequest{
		Gateway: &pb.Gateway{Meta: named("gw-1"), Spec: &pb.GatewaySpec{GatewayPool: "default", Node: "n", ForwardingAddress: "192.0.2.1:3261",
			Portals: []*pb.Portal{{Listen: "192.0.2.1:3260", Fabric: "red", Switch: "s1"}, {Listen: "198.51.100.1:3260", Fabric: "blue", Switch: "s1"}}}}}); err != nil {
		t.Fatal(err)
	}
	web := host("open-sesame-123")
	web.Meta, web.Spec.Switches = named("web"), []string{"red/s1"}
	if _, err := pb.NewHostServiceClient(admin).CreateHost(t.Context(), &pb.CreateHostRequest{Host: web}); err != nil {
		t.Fatal(err)
	}
	s.follow()
	for name, hosts := range map[string]int32{"red": 1, "blue": 0} {
		got, err := fabrics.GetFabric(t.Context(), &pb.GetFabricRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if status := got.GetFabric().GetStatus(); status.GetPortals() != 1 || status.GetHosts() != hosts {
			t.Errorf("%s: %d portals, %d hosts, want 1 and %d", name, status.GetPortals(), status.GetHosts(), hosts)
		}
	}
}
