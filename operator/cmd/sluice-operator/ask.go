package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/operator/internal/connection"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// queryCommand returns a command that queries the control plane.
func queryCommand(use, short string, ask func(context.Context, *grpc.ClientConn) error) *cobra.Command {
	options := connection.Options{}
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			opened, err := connection.Open(options)
			if err != nil {
				return err
			}
			defer func() { _ = opened.Close() }()
			return ask(command.Context(), opened)
		},
	}
	options.AddFlags(command.Flags(), "", "sluice:operator")
	return command
}

func unusedCommand() *cobra.Command {
	return queryCommand("unused", "Fail while hosts are logged in, and say which", func(ctx context.Context, c *grpc.ClientConn) error {
		sessions, err := liveSessions(ctx, c)
		if err != nil {
			return fmt.Errorf("whether hosts are logged in is not known: %w", err)
		}
		if len(sessions) > 0 {
			return fmt.Errorf("hosts are logged in (%d sessions):\n  %s\nlog them out first; to uninstall regardless: "+
				"helm upgrade --reuse-values --set uninstallGuard=false, or helm uninstall --no-hooks",
				len(sessions), strings.Join(sessions[:min(len(sessions), 20)], "\n  "))
		}
		return nil
	})
}

// sessionPage is the largest page: for each page of sessions the control plane reads all of them.
const sessionPage = 1000

// liveSessions describes, one per line, each session of a host.
func liveSessions(ctx context.Context, connection grpc.ClientConnInterface) ([]string, error) {
	service := pb.NewSessionServiceClient(connection)
	var found []string
	for session, err := range client.All(ctx, service.ListSessions, &pb.ListSessionsRequest{Options: &pb.ListOptions{PageSize: sessionPage}},
		(*pb.ListSessionsResponse).GetSessions) {
		if err != nil {
			return nil, err
		}
		s := session.GetStatus()
		found = append(found, fmt.Sprintf("%s (host %s) on target %s at gateway %s", s.GetInitiator(), s.GetHost(), s.GetTarget(),
			s.GetGateway()))
	}
	return found, nil
}

func portalsCommand() *cobra.Command {
	var target, to string
	var lun int
	var patience time.Duration
	command := queryCommand("portals", "Wait until a target is ready on every path, and write its portals to a file as iscsi:// URLs",
		func(ctx context.Context, c *grpc.ClientConn) error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			portals, err := targetPortals(ctx, c, target)
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, portal := range portals {
				_, _ = fmt.Fprintf(&text, "iscsi://%s/%s/%d\n", portal.address, portal.target, lun)
			}
			return os.WriteFile(to, []byte(text.String()), 0o644)
		})
	flags := command.Flags()
	flags.StringVar(&target, "target", "", "the target's name in the control plane: <namespace>.<name>")
	flags.IntVar(&lun, "lun", 0, "LUN in the URLs")
	flags.StringVar(&to, "to", "", "file to write")
	flags.DurationVar(&patience, "timeout", 3*time.Minute, "how long the target is waited for")
	command.PreRunE = func(*cobra.Command, []string) error {
		if target == "" || to == "" {
			return errors.New("--target and --to are missing: which target, and which file")
		}
		return nil
	}
	return command
}
