package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func nodeDrain(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "drain NODE", Short: "Move volumes and paths away from all gateways of a node, and wait for that", Args: cobra.ExactArgs(1),
		Long: "Move volumes and paths away from all gateways of a node, and wait for that; hosts see no error. Volumes on local pools of the node cannot\n" +
			"move: the command then names them, and changes nothing. `gateway undrain` ends the drain of a gateway.",
		RunE: func(command *cobra.Command, names []string) error {
			return g.onNode(command, names[0], func(ctx context.Context, connection *grpc.ClientConn, leaving *leavingNode) error {
				if err := leaving.canGo(); err != nil {
					return err
				}
				if err := leaving.drain(ctx, connection); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "node %s is drained\n", names[0])
				return err
			})
		},
	}
	return command
}

func nodeRemove(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "remove NODE", Short: "Remove a node from the cluster: its gateways, its local pools, and its control plane", Args: cobra.ExactArgs(1),
		Long: "Remove a node from the cluster. It drains the gateways of the node, deletes them and the local pools of the node, and removes its control\n" +
			"plane from the members. Volumes on local pools of the node prevent that: the command names them, and changes nothing. Run it on\n" +
			"another server. It prints the commands that stop the services of the removed server. Data in directories of pools stays.",
		RunE: func(command *cobra.Command, names []string) error {
			return g.onNode(command, names[0], func(ctx context.Context, connection *grpc.ClientConn, leaving *leavingNode) error {
				if err := errors.Join(leaving.notThisServer(), leaving.canGo()); err != nil {
					return err
				}
				return leaving.remove(ctx, connection)
			})
		},
	}
	return command
}

// leavingNode is a node that is drained, removed or replaced.
type leavingNode struct {
	g        *globals
	command  *cobra.Command
	name     string
	gateways []*pb.Gateway
	pools    []*pb.StoragePool
	// bound are the volumes on its local pools.
	bound  []*pb.Volume
	member bool
	// lost are volumes and snapshots that are deleted already.
	lost []proto.Message
	// seen has all objects of the system.
	seen *clusterObjects
}

// onNode reads what a node has, and runs a command for it within the time of a wait. Error: there is no such node.
func (g *globals) onNode(command *cobra.Command, name string, run func(context.Context, *grpc.ClientConn, *leavingNode) error) error {
	limit := g.limit(command)
	if !command.Flags().Changed("timeout") {
		limit = waitTimeout
	}
	connection, ctx, done, err := g.connect(command.Context(), limit)
	if err != nil {
		return err
	}
	defer done()
	leaving, err := g.leaving(ctx, command, connection, name)
	if err != nil {
		return err
	}
	return run(ctx, connection, leaving)
}

func (g *globals) leaving(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, name string) (*leavingNode, error) {
	nodes, err := nodesOf(ctx, connection)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(nodes, func(n *listedNode) bool { return n.Name == name })
	if at < 0 {
		return nil, status.Errorf(codes.NotFound, "there is no node %s: `sluicectl node list` shows the nodes", name)
	}
	seen, err := survey(ctx, connection)
	if err != nil {
		return nil, err
	}
	leaving := &leavingNode{g: g, command: command, name: name, member: nodes[at].ControlPlane != "", seen: seen}
	local := map[string]bool{}
	for _, pool := range seen.pools {
		if pool.GetSpec().GetLocal().GetNode() == name {
			leaving.pools = append(leaving.pools, pool)
			local[pool.GetMeta().GetName()] = true
		}
	}
	for _, gateway := range seen.gateways {
		if gateway.GetSpec().GetNode() == name {
			leaving.gateways = append(leaving.gateways, gateway)
		}
	}
	for _, volume := range seen.volumes {
		if local[volume.GetSpec().GetPool()] {
			leaving.bound = append(leaving.bound, volume)
		}
	}
	return leaving, nil
}

// canGo returns an error if volumes cannot leave the node.
func (l *leavingNode) canGo() error {
	if len(l.bound) == 0 {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "these volumes are on local pools of node %s and cannot leave it: %s. Copy their data to volumes "+
		"elsewhere and delete them first; nothing was changed", l.name, strings.Join(namesOf(l.bound), ", "))
}

func namesOf[M proto.Message](objects []M) []string {
	var names []string
	for _, object := range objects {
		names = append(names, metaOf(object).GetName())
	}
	return names
}

// drain drains all gateways, and waits until no volume and no path needs them.
func (l *leavingNode) drain(ctx context.Context, connection *grpc.ClientConn) error {
	k := kindNamed("gateway")
	var goals []goal
	for _, gateway := range l.gateways {
		name := gateway.GetMeta().GetName()
		drained, err := pb.NewGatewayServiceClient(connection).DrainGateway(ctx, &pb.DrainGatewayRequest{Name: name})
		if err != nil {
			return k.about(name, err)
		}
		switch drained.GetGateway().GetStatus().GetHealth() {
		case pb.GatewayHealth_GATEWAY_HEALTH_NEW, pb.GatewayHealth_GATEWAY_HEALTH_DEAD: // it has nothing that must leave it
		default:
			goals = append(goals, goal{kind: k, from: drained.GetGateway(), missing: undrained, replaced: k.replaced})
		}
	}
	_, err := l.g.waitAll(ctx, l.command, connection, goals)
	return err
}

// remove drains the gateways, and removes all that the cluster knows of the node.
func (l *leavingNode) remove(ctx context.Context, connection *grpc.ClientConn) error {
	if err := l.drain(ctx, connection); err != nil {
		return err
	}
	units, err := l.forget(ctx, connection)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.command.OutOrStdout(), "\nnode %[1]s is removed. Its services still run. As root, on the server %[1]s:\n\n  systemctl disable --now %[2]s\n"+
		"  rm -rf /etc/sluice/node.yaml /etc/sluice/gateway-*.env /etc/sluice/tls/* /var/lib/sluice/gateway-* /var/lib/sluice-controlplane/*\n"+
		"  sed -i 's/^FLAGS=.*/FLAGS=\"\"/' /etc/sluice/controlplane.env\n\nOn each other server: sluicectl node refresh\n", l.name, strings.Join(units, " "))
	return err
}

// forget deletes the pools and gateways of the node, and removes its control plane. It returns the units of the node's services.
func (l *leavingNode) forget(ctx context.Context, connection *grpc.ClientConn) (units []string, err error) {
	for _, pool := range l.pools {
		if err := l.delete(ctx, connection, pool); err != nil {
			return nil, err
		}
	}
	// Those that `node init` and `node join` make are named also if an interrupted run has deleted their objects.
	units = []string{"sluice-gateway@" + l.name + "-1", "sluice-gateway@" + l.name + "-2"}
	for _, gateway := range l.gateways {
		if err := l.delete(ctx, connection, gateway); err != nil {
			return nil, err
		}
		if unit := "sluice-gateway@" + gateway.GetMeta().GetName(); !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	if l.member {
		if _, err := pb.NewMembershipServiceClient(connection).RemoveMember(ctx, &pb.RemoveMemberRequest{Node: l.name}); err != nil {
			return nil, fmt.Errorf("control plane of node %s: %w", l.name, err)
		}
		_, _ = fmt.Fprintf(l.command.OutOrStdout(), "control plane of node %s removed\n", l.name)
		units = append(units, "sluice-controlplane")
	}
	return units, nil
}

// delete deletes an object, and waits until it is gone.
func (l *leavingNode) delete(ctx context.Context, connection *grpc.ClientConn, object proto.Message) error {
	k, name := kindOf(object), metaOf(object).GetName()
	response, err := k.call(ctx, connection, "Delete", k.message, map[string]any{"name": name})
	if err != nil {
		return k.about(name, err)
	}
	if from := k.objectIn(response); metaOf(from).GetDeleteTime() != nil {
		if _, err := l.g.waitAll(ctx, l.command, connection, []goal{{kind: k, from: from, missing: undeleted}}); err != nil {
			return err
		}
	}
	k.printChange(l.command, object, "is gone", false)
	return nil
}

// notThisServer refuses to remove the server on which the command runs: its control plane would end during the removal.
func (l *leavingNode) notThisServer() error {
	if own, err := node.ThisServer().NodeName(); err == nil && own == l.name { // without permission to read it, this is no node of the user
		return usagef("this server is node %s: run the command on another server of the system", l.name)
	}
	return nil
}
