package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// listedNode is a node, as its gateways, its pools and its member of the embedded etcd show it.
type listedNode struct {
	Name         string   `json:"name"`
	Address      string   `json:"address,omitempty"`
	ControlPlane string   `json:"controlPlane,omitempty"`
	Gateways     int      `json:"gateways"`
	Ready        int      `json:"gatewaysReady"`
	Pools        []string `json:"pools,omitempty"`
}

func nodeList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the nodes: address, control plane, gateways that are ready, local pools", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				nodes, err := nodesOf(ctx, connection)
				if err != nil {
					return err
				}
				if g.structured() {
					return encode(command.OutOrStdout(), map[string]any{"items": nodes}, g.output)
				}
				return printNodes(command.OutOrStdout(), nodes)
			})
		},
	}
}

// nodesOf returns all nodes in the order of their names.
func nodesOf(ctx context.Context, connection *grpc.ClientConn) ([]*listedNode, error) {
	seen, err := survey(ctx, connection)
	if err != nil {
		return nil, err
	}
	nodes := map[string]*listedNode{}
	of := func(name string) *listedNode {
		if nodes[name] == nil {
			nodes[name] = &listedNode{Name: name}
		}
		return nodes[name]
	}
	for _, gateway := range seen.gateways {
		one := of(gateway.GetSpec().GetNode())
		one.Gateways++
		if gateway.GetStatus().GetHealth() == pb.GatewayHealth_GATEWAY_HEALTH_READY {
			one.Ready++
		}
		host, _, _ := net.SplitHostPort(gateway.GetSpec().GetForwardingAddress()) // the control plane has validated it
		one.Address = cmp.Or(one.Address, host)
	}
	for _, pool := range seen.pools {
		if local := pool.GetSpec().GetLocal(); local != nil {
			one := of(local.GetNode())
			one.Pools = append(one.Pools, pool.GetMeta().GetName())
		}
	}
	listed, err := pb.NewMembershipServiceClient(connection).ListMembers(ctx, &pb.ListMembersRequest{})
	// An external etcd has no members here, and an earlier control plane no such call.
	if code := status.Code(err); err != nil && code != codes.FailedPrecondition && code != codes.Unimplemented {
		return nil, err
	}
	for _, member := range listed.GetMembers() {
		one := of(member.GetNode())
		one.ControlPlane = memberState(member)
		if host, _, err := net.SplitHostPort(cmp.Or(member.GetApiAddress(), member.GetPeerAddress())); err == nil {
			one.Address = cmp.Or(one.Address, host)
		}
	}
	return slices.SortedFunc(maps.Values(nodes), func(a, b *listedNode) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// memberState says what a member of the embedded etcd does.
func memberState(member *pb.Member) string {
	switch {
	case !member.GetReachable():
		return "NotReachable"
	case member.GetApiAddress() == "":
		return "NotStarted"
	}
	return word(member.GetRole(), "MEMBER_ROLE_")
}

func printNodes(to io.Writer, nodes []*listedNode) error {
	out := tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(out, "NAME\tADDRESS\tCONTROL-PLANE\tGATEWAYS-READY\tPOOLS")
	for _, one := range nodes {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%d/%d\t%s\n", one.Name, orDash(one.Address), orDash(one.ControlPlane), one.Ready, one.Gateways,
			orDash(strings.Join(one.Pools, ",")))
	}
	return out.Flush()
}
