package api

import (
	"log/slog"
	"testing"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// The view begins to follow the store when the names are asked for.
func TestObjectsShowTheNamesOfGatewaysThatTheViewDoesNotKnowYet(t *testing.T) {
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	gateway := &model.Gateway{
		Meta: model.Meta{Name: "gw-1"},
		Spec: model.GatewaySpec{GatewayPool: "default", Node: "n1", ForwardingAddress: "192.0.2.1:3261",
			Portals: []model.Portal{{Fabric: "red", Listen: "192.0.2.1:3260"}}},
	}
	for _, err := range []error{
		s.Fabrics.Create(t.Context(), &model.Fabric{Meta: model.Meta{Name: "red"}}, false),
		s.GatewayPools.Create(t.Context(), &model.GatewayPool{Meta: model.Meta{Name: "default"}, Spec: model.GatewayPoolSpec{Fabrics: []string{"red"}}}, false),
		s.Gateways.Create(t.Context(), gateway, false),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	version, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"volume", "target"} {
		seen := view.New(s, slog.New(slog.DiscardHandler))
		counts := NewCounts(s, seen)
		go func() { _ = seen.Run(t.Context()) }()
		meta, name := &pb.ObjectMeta{ResourceVersion: version}, ""
		if kind == "volume" {
			volume := &pb.Volume{Meta: meta, Status: &pb.VolumeStatus{OwnerGateway: gateway.Status.Number}}
			err = counts.volumes(t.Context(), []*pb.Volume{volume})
			name = volume.GetStatus().GetOwner()
		} else {
			target := &pb.Target{Meta: meta, Status: &pb.TargetStatus{Paths: []*pb.TargetPath{{TargetPortGroup: gateway.Status.Number}}}}
			err = counts.targets(t.Context(), []*pb.Target{target})
			name = target.GetStatus().GetPaths()[0].GetGateway()
		}
		if err != nil || name != "gw-1" {
			t.Errorf("%s: %q, %v", kind, name, err)
		}
	}
}
