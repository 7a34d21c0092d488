package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
)

func nodeCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "node", Short: "Set servers up as nodes of a cluster", Args: cobra.NoArgs,
		Long: "Set servers with Debian and the installed packages up as nodes of a cluster. The commands make ordinary files and units, as " +
			"docs/INSTALL.md lists them.",
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(nodeCheck(), nodeInit(g), nodeJoin(g), nodeRefresh(g), nodeRenew(g), nodeUpgrade(g), nodeToken(g), nodeList(g), nodeDrain(g),
		nodeRemove(g), nodeReplace(g))
	return command
}

// addNodeOptions adds the flags that say how a server becomes a node.
func addNodeOptions(command *cobra.Command, options *node.Options) {
	flags := command.Flags()
	flags.StringVar(&options.Name, "name", "", "name of the node; empty: the host name without its domain")
	flags.StringVar(&options.Address, "address", "", "address of this server for control plane and gateways; empty: its only address besides loopback")
	flags.StringArrayVar(&options.Pools, "pool", nil, "directory on XFS or ext4 for a local pool; repeat for more")
	flags.StringArrayVar(&options.Fabrics, "fabric", nil, "fabric as NAME=CIDR: its subnet, or this server's address on it with the length of the "+
		"prefix; repeat for more; none: a fabric named "+node.DefaultFabric+" with the subnet of --address")
}

func nodeCheck() *cobra.Command {
	options := node.Options{}
	command := &cobra.Command{
		Use: "check", Short: "Check whether this server can become a node, and change nothing", Args: cobra.NoArgs,
		Long: "Check whether this server can become a node with these flags. Each problem is printed with its remedy. Nothing is changed. The exit " +
			"code is 5 if there is a problem.",
		RunE: func(command *cobra.Command, _ []string) error {
			preflight := node.NewPreflight(node.ThisServer(), options)
			preflight.CheckOnly = true
			return passed(command, preflight)
		},
	}
	addNodeOptions(command, &options)
	return command
}

// passed runs a preflight and prints it. An error means that this server cannot become a node.
func passed(command *cobra.Command, preflight *node.Preflight) error {
	if count := preflight.Run(command.Context(), command.OutOrStdout()); count > 0 {
		return status.Errorf(codes.FailedPrecondition, "%s: nothing was changed; correct that and run the command again", plural(count, "problem"))
	}
	return nil
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

func nodeInit(g *globals) *cobra.Command {
	options := node.Options{}
	var certificates string
	command := &cobra.Command{
		Use: "init --pool DIRECTORY", Short: "Make this server the first node of a cluster", Args: cobra.NoArgs,
		Long: "Make this server the first node of a cluster: certificates, a control plane, a fabric for each subnet, two gateways and a local pool\n" +
			"for each directory. It runs as root on a server that has the packages, and checks first whether the server is suitable (`node check`).\n\n" +
			"Run it again after an interruption: it continues. After the last step a further run changes nothing. The gateways NAME-1 and NAME-2\n" +
			"have portals on the ports 3260 and 3270. The access of the administrator is stored as a context, so `sluicectl status` works at once.",
		RunE: func(command *cobra.Command, _ []string) error {
			preflight := node.NewPreflight(node.ThisServer(), options)
			if err := passed(command, preflight); err != nil {
				return err
			}
			return g.initNode(command, preflight, certificates)
		},
	}
	addNodeOptions(command, &options)
	command.Flags().StringVar(&certificates, "certificates", "/root/sluice-certs", "directory of the certificate authority; keep a copy of it apart from "+
		"the server")
	return command
}

// initNode runs the steps of the first node, and shows the status of the cluster.
func (g *globals) initNode(command *cobra.Command, preflight *node.Preflight, certificates string) error {
	work := &node.Init{System: preflight.System, Plan: preflight.Plan, Certificates: certificates, StoreAccess: storeAccess,
		Connect: func(access node.Access) node.Cluster { return &nodeCluster{g: g.accessing(access), command: command} }}
	err := g.nodeSteps(command, preflight.Plan.Name, func(ctx context.Context) (*globals, bool, error) {
		changed, err := work.Run(ctx, command.OutOrStdout())
		return g.accessing(work.Access()), changed, err
	})
	if err == nil {
		_, err = fmt.Fprintln(command.OutOrStdout(), "\nA further server joins by the command that this one prints: "+command.Root().Name()+" node token create")
	}
	return err
}
