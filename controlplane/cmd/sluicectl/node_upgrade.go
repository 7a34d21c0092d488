package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// unrelated are warnings that say nothing about whether hosts keep a path during an upgrade: a single server always has the first one, and
// the upgrade makes a backup.
var unrelated = []string{"PathsNotRedundant", "BackupOld"}

func nodeUpgrade(g *globals) *cobra.Command {
	var ignored []string
	work := &node.Upgrade{System: node.ThisServer()}
	command := &cobra.Command{
		Use: "upgrade [PACKAGE-FILE...]", Short: "Install newer packages on this server while hosts continue",
		Long: "Install newer packages on this server: the files, or without files what apt finds in its repositories. Run it as root, on one server\n" +
			"after the other. A finding of the system forbids it. The store is saved first. The control plane and each gateway then start again. A gateway\n" +
			"hands its volumes over before it ends, and the next one waits until the hosts have returned to it. The command ends once the gateways\n" +
			"and pools of this server serve again and the system has no finding. It can be repeated after an interruption.",
		RunE: func(command *cobra.Command, files []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), waitTimeout)
			defer cancel()
			work.Packages = files
			cluster := &nodeCluster{g: g, command: command}
			work.Cluster = cluster
			work.Findings = func(ctx context.Context) ([]string, error) {
				return cluster.forbidding(ctx, append(ignored, unrelated...))
			}
			work.Sessions = cluster.sessionsOn
			changed, err := work.Run(ctx, command.OutOrStdout())
			if err != nil {
				return err
			}
			result := "this server is upgraded: continue with the next one"
			if !changed {
				result = "nothing was changed: the packages are installed already"
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), "\n"+result)
			return err
		},
	}
	command.Flags().StringSliceVar(&ignored, "ignore", nil, "names of findings that do not forbid the upgrade; "+
		"PathsNotRedundant and BackupOld never do")
	return command
}

// sessionsOn returns the number of sessions of hosts on a gateway.
func (c *nodeCluster) sessionsOn(ctx context.Context, gateway string) (count int, err error) {
	err = c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		found, err := pb.NewGatewayServiceClient(connection).GetGateway(ctx, &pb.GetGatewayRequest{Name: gateway})
		count = int(found.GetGateway().GetStatus().GetSessions())
		return err
	})
	return count, err
}

// forbidding returns the critical findings and warnings, one line each, without those of some names.
func (c *nodeCluster) forbidding(ctx context.Context, ignored []string) ([]string, error) {
	var lines []string
	err := c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		found, err := findingsOf(ctx, connection, &pb.ListFindingsRequest{MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_WARNING})
		for _, f := range found {
			if !slices.Contains(ignored, f.GetId()) {
				lines = append(lines, fmt.Sprintf("%s %s: %s", f.GetId(), subject(f), f.GetCause()))
			}
		}
		return err
	})
	return lines, err
}
