package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// members are those of a store of which a test decides who answers.
type members struct {
	pb.UnimplementedMembershipServiceServer
	listed  []*pb.Member
	removed []string
}

func (m *members) ListMembers(context.Context, *pb.ListMembersRequest) (*pb.ListMembersResponse, error) {
	return &pb.ListMembersResponse{Members: m.listed}, nil
}

func (m *members) RemoveMember(_ context.Context, request *pb.RemoveMemberRequest) (*pb.RemoveMemberResponse, error) {
	m.removed = append(m.removed, request.GetNode())
	m.listed = slices.DeleteFunc(m.listed, func(one *pb.Member) bool { return one.GetNode() == request.GetNode() })
	return &pb.RemoveMemberResponse{}, nil
}

func (m *members) CreateJoinToken(context.Context, *pb.CreateJoinTokenRequest) (*pb.CreateJoinTokenResponse, error) {
	return &pb.CreateJoinTokenResponse{Token: "sluice1.x", JoinAddresses: []string{"192.0.2.2:7468"}}, nil
}

// withMembers are three servers of which the first is dead, with its gateway.
func withMembers(t *testing.T) (*live, *members) {
	t.Helper()
	all := &members{}
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		all.listed = append(all.listed, &pb.Member{Node: name, PeerAddress: name + ":7467", ApiAddress: name + ":7460",
			Role: pb.MemberRole_MEMBER_ROLE_VOTER, Reachable: name != "node-1"})
	}
	l := start(t)
	l.stop()
	l.membership = all
	l.stop = l.serve()
	l.prerequisites()
	modify(l, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayDead })
	return l, all
}

func TestANodeThatIsAliveIsNotReplaced(t *testing.T) {
	l, all := withMembers(t)
	_, err := l.run("node", "replace", "node-2")
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "node node-2 is alive: its control plane answers") {
		t.Errorf("%v", err)
	}
	all.listed[1].Reachable = false
	modify(l, "gw-2", func(g *model.Gateway) { g.Status.Health = model.GatewayDisconnected })
	_, err = l.run("node", "replace", "node-2")
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "gateway gw-2 is Disconnected") {
		t.Errorf("%v", err)
	}
	if len(all.removed) > 0 {
		t.Errorf("%v were removed", all.removed)
	}
}

func TestANodeIsNotReplacedWithoutAMajorityOfTheOtherMembers(t *testing.T) {
	l, all := withMembers(t)
	all.listed[2].Reachable = false
	_, err := l.run("node", "replace", "node-1")
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "no majority, because these do not answer: node-3") {
		t.Errorf("%v", err)
	}
	if _, err := l.Gateways.Get(t.Context(), "gw-1"); err != nil || len(all.removed) > 0 {
		t.Errorf("%v were removed, %v", all.removed, err)
	}
}

func TestADeadNodeWithVolumesIsReplacedOnlyWithConsentToTheirLoss(t *testing.T) {
	l, all := withMembers(t)
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	l.must("host", "create", "web", "--initiator", "iqn.2026-11.org.example:web", "--allow-unauthenticated")
	l.must("target", "create", "db", "--lun", "0=orders", "--host", "web", "--paths", "1")
	_, err := l.run("node", "replace", "node-1")
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "are lost with its server: orders") {
		t.Fatalf("%v", err)
	}
	if target, err := l.Targets.Get(t.Context(), "db"); err != nil || len(target.Spec.Luns) != 1 || len(all.removed) > 0 {
		t.Fatalf("%+v, %v", target, err)
	}

	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "node", "replace", "node-1", "--lose-volumes")
	r.err.until(t, "volume orders: it is still being deleted")
	interrupt()
	if err := <-r.ended; err == nil {
		t.Fatal("an interrupted replacement succeeded")
	}
	volume, err := l.Volumes.Get(t.Context(), "orders")
	if err != nil || volume.Spec.ReclaimPolicy != model.ReclaimRetain {
		t.Fatalf("%+v, %v", volume, err)
	}

	r = l.begin(t.Context(), "node", "replace", "node-1", "--lose-volumes")
	r.err.until(t, "volume orders: it is still being deleted")
	l.removed(volume)
	r.err.until(t, "gateway gw-1: it is still being deleted")
	gateway, err := l.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	l.removed(gateway)
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all.removed, []string{"node-1"}) {
		t.Errorf("%v were removed", all.removed)
	}
	if want := "sluicectl node join sluice1.x@192.0.2.2:7468 --pool /srv/sluice\n"; !strings.Contains(r.out.String(), want) {
		t.Errorf("%q is missing in:\n%s", want, r.out)
	}
	if want := "Its lost volumes: orders."; !strings.Contains(r.err.String(), want) {
		t.Errorf("%q is missing in:\n%s", want, r.err)
	}
	if target, err := l.Targets.Get(t.Context(), "db"); err != nil || len(target.Spec.Luns) > 0 {
		t.Errorf("%+v, %v", target, err)
	}
	if rows := l.must("node", "list"); strings.Contains(rows, "node-1") {
		t.Errorf("the node is still there:\n%s", rows)
	}
	_, err = l.run("node", "replace", "node-1")
	if exitCode(err) != exitNotFound {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// removed removes a deleted object in the role of the leader.
func (l *live) removed(object model.Object) {
	l.t.Helper()
	storetest.During(l.t, l.Store, func(term *store.Term) {
		if err := term.Remove(l.t.Context(), object); err != nil {
			l.t.Fatal(err)
		}
	})
}
