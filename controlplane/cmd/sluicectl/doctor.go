package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// unhealthyError makes `doctor` exit with a code other than 0 if there are findings.
type unhealthyError struct{ count int }

func (e *unhealthyError) Error() string { return fmt.Sprintf("%d findings", e.count) }

func doctorCommand(g *globals) *cobra.Command {
	var watch bool
	command := &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		Short: "Show everything that is wrong with the system, with cause and remedy",
		Long: "Show everything that is wrong with the system, the most severe first, each with its cause, its remedy, its section of the " +
			"runbook, and what follows from it. The exit code is 1 if there is a finding. With --watch each finding that is new, has changed or has ended " +
			"follows within about a second, until you interrupt it.",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				seen, err := meet(ctx, connection)
				if err != nil {
					return err
				}
				local := g.localFindings(seen, time.Now())
				if watch {
					writeFindings(command.OutOrStdout(), "", local)
					return watchFindings(ctx, command, connection)
				}
				found, err := findingsOf(ctx, connection, &pb.ListFindingsRequest{})
				if err != nil {
					return err
				}
				found = append(found, local...)
				writeFindings(command.OutOrStdout(), "", found)
				if len(found) > 0 {
					return &unhealthyError{len(found)}
				}
				_, err = fmt.Fprintln(command.OutOrStdout(), "nothing is wrong")
				return err
			})
		},
	}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "continue with findings that begin, change or end from now on, until interrupted")
	return command
}
