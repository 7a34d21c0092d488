package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// rotateKeys replaces the keys between all gateways.
func rotateKeys(_ *kind, g *globals) *cobra.Command {
	var dryRun bool
	command := &cobra.Command{
		Use: "rotate-keys", Short: "Give every pair of gateways a new key; no command fails", Args: cobra.NoArgs,
		Long: `Give every pair of gateways a new key.

Gateways use the new key for new sessions at once. The earlier key is accepted for 15 more minutes. Sessions that are open stay open.
To shut out one gateway at once, delete it: its key is void as soon as its peers learn of that.`,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				request := &pb.RotateGatewayKeysRequest{DryRun: dryRun}
				if err := canDryRun(ctx, connection, request, dryRun); err != nil {
					return err
				}
				if _, err := pb.NewGatewayServiceClient(connection).RotateGatewayKeys(ctx, request); err != nil {
					return err
				}
				what := "gateway keys rotated"
				if dryRun {
					what = "gateway keys would be rotated"
				}
				_, err := fmt.Fprintln(command.OutOrStdout(), what)
				return err
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	return command
}
