package main

import (
	"context"
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestANodeCreatesOnlyObjectsThatDoNotExist(t *testing.T) {
	l := start(t)
	cluster := &nodeCluster{g: &globals{server: l.address, insecure: true}, command: &cobra.Command{}}
	for _, want := range []bool{true, false} {
		// Another subnet than the first: an object that exists stays as it is.
		fabric := &pb.Fabric{Meta: &pb.ObjectMeta{Name: "red"}, Spec: &pb.FabricSpec{}}
		if want {
			fabric.Spec.Subnets = []string{"192.0.2.0/24"}
		}
		if created, err := cluster.Ensure(t.Context(), fabric); err != nil || created != want {
			t.Errorf("created: %v, %v", created, err)
		}
	}
	if stored, err := l.Fabrics.Get(t.Context(), "red"); err != nil || len(stored.Spec.Subnets) != 1 {
		t.Errorf("%+v, %v", stored, err)
	}
}

func TestANodeIsAwaitedUntilItsGatewaysCanBeUsed(t *testing.T) {
	l := start(t)
	l.prerequisites()
	cluster := &nodeCluster{g: &globals{server: l.address, insecure: true}, command: &cobra.Command{}}
	cluster.command.SetErr(&written{heard: make(chan struct{}, 1)})
	gateway := &pb.Gateway{Meta: &pb.ObjectMeta{Name: "gw-1"}}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cluster.WaitUsable(short, gateway); err == nil {
		t.Error("a gateway that never connected can be used")
	}
	modify(l, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayReady })
	if err := cluster.WaitUsable(t.Context(), gateway); err != nil {
		t.Error(err)
	}
}

func TestTheAccessToANodeIsTheCurrentContextUnlessThereIsOne(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	access := node.Access{Server: "192.0.2.1:7460", CA: "/c/ca.crt", Certificate: "/c/admin.crt", Key: "/c/admin.key"}
	for _, want := range []bool{true, false} {
		if changed, err := storeAccess(access); err != nil || changed != want {
			t.Errorf("changed: %v, %v", changed, err)
		}
	}
	read, err := readConfiguration()
	if err != nil || read.Current != nodeContext || *read.Contexts[nodeContext] != (serverContext{Server: access.Server, CA: access.CA,
		Certificate: access.Certificate, Key: access.Key}) {
		t.Errorf("%+v, %v", read, err)
	}
	other := &configuration{Current: "lab", Contexts: map[string]*serverContext{"lab": {Server: "lab:7460"}}}
	if err := other.write(); err != nil {
		t.Fatal(err)
	}
	if _, err := storeAccess(access); err != nil {
		t.Fatal(err)
	}
	if read, err := readConfiguration(); err != nil || read.Current != "lab" || read.Contexts[nodeContext] == nil {
		t.Errorf("%+v, %v", read, err)
	}
}

func TestNodeInitOnAServerThatIsNotSuitableEndsWithTheCodeOfNotNow(t *testing.T) {
	l := start(t)
	_, err := l.run("node", "init", "--pool", "relative", "--name", "A_1")
	if exitCode(err) != exitNotNow {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}
