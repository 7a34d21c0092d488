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

	"sluice.dev/sluice/operator/internal/controlplane"
)

// asking makes a command that asks the control plane.
func asking(use, short string, ask func(context.Context, *grpc.ClientConn) error) *cobra.Command {
	options := controlplane.Options{}
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			connection, err := controlplane.Connect(options)
			if err != nil {
				return err
			}
			defer func() { _ = connection.Close() }()
			return ask(command.Context(), connection)
		},
	}
	options.AddFlags(command.Flags(), "")
	return command
}

func unusedCommand() *cobra.Command {
	return asking("unused", "Fail while hosts are logged in, and say which", func(ctx context.Context, c *grpc.ClientConn) error {
		sessions, err := controlplane.LiveSessions(ctx, c)
		if err != nil {
			return fmt.Errorf("whether hosts are logged in is not known: %w", err)
		}
		if len(sessions) > 0 {
			return fmt.Errorf("hosts are logged in (%d sessions):\n  %s\nlog them out first; to go on all the same: "+
				"helm upgrade --reuse-values --set uninstallGuard=false, or helm uninstall --no-hooks",
				len(sessions), strings.Join(sessions[:min(len(sessions), 20)], "\n  "))
		}
		return nil
	})
}

func portalsCommand() *cobra.Command {
	var target, to string
	var lun int
	var patience time.Duration
	command := asking("portals", "Wait until a target is ready on every path, and write its portals to a file as iscsi:// URLs",
		func(ctx context.Context, c *grpc.ClientConn) error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			portals, err := controlplane.TargetPortals(ctx, c, target)
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, portal := range portals {
				_, _ = fmt.Fprintf(&text, "iscsi://%s/%s/%d\n", portal.Address, portal.Target, lun)
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
