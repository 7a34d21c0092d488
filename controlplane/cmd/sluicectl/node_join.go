package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// joinInvitation is a token with the address of the service at which it is valid.
type joinInvitation struct {
	token   client.JoinToken
	address string
	// say prints a line for the administrator.
	say func(string)
}

// readInvitation reads TOKEN@ADDRESS. Without a port the address has the default port of join services.
func readInvitation(text string) (*joinInvitation, error) {
	before, address, found := strings.Cut(text, "@")
	if !found || address == "" {
		return nil, usagef("the argument is TOKEN@ADDRESS, as `sluicectl node token create` prints it")
	}
	token, err := client.ParseJoinToken(before)
	if err != nil {
		return nil, usagef("TOKEN@ADDRESS: %w", err)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), node.JoinPort)
	}
	return &joinInvitation{token: token, address: address}, nil
}

// joinPatience is how long a join is repeated while the system does not permit it: members of etcd must be connected for some seconds before
// the next server joins.
const joinPatience = time.Minute

// call joins a system. It sends the token only to a server that the token's authority has certified.
func (i *joinInvitation) call(ctx context.Context, request *pb.JoinRequest) (*pb.JoinResponse, error) {
	connection, err := grpc.NewClient(i.address, grpc.WithTransportCredentials(i.token.Credentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	patience := time.After(joinPatience)
	reported := ""
	for {
		response, err := pb.NewJoinServiceClient(connection).Join(ctx, request)
		if err == nil {
			return response, nil
		}
		err = fmt.Errorf("%s: %w", i.address, err)
		if status.Code(err) != codes.Unavailable {
			return nil, err
		}
		if text := status.Convert(err).Message(); text != reported {
			i.say("  waiting: " + text)
			reported = text
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-patience:
			return nil, err
		case <-time.After(watchAgainAfter):
		}
	}
}

func nodeJoin(g *globals) *cobra.Command {
	options := node.Options{}
	var certificates string
	var gatewaysOnly bool
	command := &cobra.Command{
		Use: "join TOKEN@ADDRESS", Short: "Make this server a further node of a cluster", Args: cobra.MaximumNArgs(1),
		Long: "Make this server a further node of a cluster: a control plane, if the system has fewer than three, two gateways on all fabrics, and a\n" +
			"local pool for each directory. It runs as root on a server that has the packages, and checks first whether the server is suitable.\n" +
			"Private keys are made here and stay here.\n\n" +
			"The fabrics are those of the system; the addresses of the portals are found by their subnets. Run it again after an interruption: it\n" +
			"continues. Once the server has its certificates, the argument can be left out.\n\n" +
			"A server without a control plane has no access as an administrator. Give it one by --server and --tls-*, or by `context set`.\n" +
			"Afterwards run `node refresh` on each earlier server: its gateways then know the new control plane, too.",
		RunE: func(command *cobra.Command, arguments []string) error {
			var invitation *joinInvitation
			work := &node.Join{GatewaysOnly: gatewaysOnly, Certificates: certificates, StoreAccess: storeAccess,
				Say: func(text string) { _, _ = fmt.Fprintln(command.OutOrStdout(), text) }}
			if len(arguments) > 0 {
				var err error
				if invitation, err = readInvitation(arguments[0]); err != nil {
					return err
				}
				invitation.say = work.Say
				work.Token, work.At, work.Call = invitation.token.Text(), invitation.address, invitation.call
			}
			preflight := node.NewPreflight(node.ThisServer(), options)
			preflight.Joining = true
			if err := passed(command, preflight); err != nil {
				return err
			}
			work.Preflight = preflight
			return g.joinNode(command, work)
		},
	}
	addNodeOptions(command, &options)
	command.Flags().StringVar(&certificates, "certificates", "/root/sluice-certs", "directory of the administrator's certificate")
	command.Flags().BoolVar(&gatewaysOnly, "gateways-only", false, "do not run a control plane on this server")
	command.Flags().Lookup("fabric").Usage = "address of this server on a fabric that has several, as NAME=ADDRESS/LENGTH; repeat for more"
	return command
}

// joinNode runs the steps of a further node, and shows the status of the cluster.
func (g *globals) joinNode(command *cobra.Command, work *node.Join) error {
	return g.nodeSteps(command, work.Preflight.Plan.Name, func(ctx context.Context) (*globals, bool, error) {
		work.Connect = func(access node.Access) node.Cluster { return &nodeCluster{g: g.accessing(access), command: command} }
		changed, err := work.Run(ctx, command.OutOrStdout())
		return g.accessing(work.Access()), changed, err
	})
}

// nodeSteps runs a set-up within its time limit, and prints how it ended and the status of the cluster.
func (g *globals) nodeSteps(command *cobra.Command, name string, run func(context.Context) (reached *globals, changed bool, err error)) error {
	limit := g.limit(command)
	if !command.Flags().Changed("timeout") {
		limit = waitTimeout
	}
	ctx, cancel := context.WithTimeout(command.Context(), limit)
	defer cancel()
	out := command.OutOrStdout()
	begun := time.Now()
	_, _ = fmt.Fprintln(out)
	reached, changed, err := run(ctx)
	if err != nil {
		return err
	}
	result := fmt.Sprintf("node %s is ready after %v", name, time.Since(begun).Round(time.Second/10))
	if !changed {
		result = "nothing was changed: node " + name + " is ready"
	}
	_, _ = fmt.Fprintf(out, "\n%s\n\n", result)
	return with(command, reached, func(ctx context.Context, connection *grpc.ClientConn) error {
		_, err := reached.showStatus(ctx, command, connection, eventQuery{})
		return err
	})
}

func nodeRefresh(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "refresh", Short: "Give the gateways of this server the addresses of all control planes", Args: cobra.NoArgs,
		Long: "Give the gateways of this server the addresses of all control planes, and its control plane those of the other members. Run it as root on\n" +
			"each server after another one has joined or was removed. A gateway whose flags change starts again, one after the other, so hosts\n" +
			"continue over the others.",
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), waitTimeout)
			defer cancel()
			work := &node.Refresh{System: node.ThisServer(), Cluster: &nodeCluster{g: g, command: command}}
			changed, err := work.Run(ctx, command.OutOrStdout())
			if err == nil && !changed {
				_, err = fmt.Fprintln(command.OutOrStdout(), "\nnothing was changed: the gateways know all control planes")
			}
			return err
		},
	}
}
