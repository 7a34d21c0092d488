package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func restoreCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "restore", Short: "List and confirm the operations that a restored backup left pending",
		Long: "After `sluice-controlplane restore`, operations that were pending in the backup (rollback, deletion, copy, move, resize) are " +
			"held: their results may exist already, or may no longer be wanted. Nothing of them is carried out before it is confirmed.",
		Args: cobra.NoArgs,
	}
	command.AddCommand(heldCommand(g), confirmCommand(g))
	return command
}

func heldCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "List the operations that wait for a confirmation",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				held, err := pb.NewMaintenanceServiceClient(connection).ListHeldOperations(ctx, &pb.ListHeldOperationsRequest{})
				if err != nil {
					return err
				}
				switch g.output {
				case "json", "yaml":
					shown := map[string]any{}
					if err := asMap(held, shown); err != nil {
						return err
					}
					return encode(command.OutOrStdout(), shown, g.output)
				}
				out := tabwriter.NewWriter(command.OutOrStdout(), 0, 8, 3, ' ', 0)
				_, _ = fmt.Fprintln(out, "KIND\tNAME\tHELD")
				for _, object := range held.GetObjects() {
					_, _ = fmt.Fprintf(out, "%s\t%s\t%s\n", strings.ToLower(object.GetKind()), object.GetName(),
						strings.Join(object.GetOperations(), ", "))
				}
				return out.Flush()
			})
		},
	}
}

func confirmCommand(g *globals) *cobra.Command {
	all := false
	command := &cobra.Command{
		Use: "confirm [volume|snapshot NAME]", Args: cobra.MaximumNArgs(2),
		Short: "Have the held operations of an object carried out, or with --all those of every object",
		RunE: func(command *cobra.Command, words []string) error {
			if all == (len(words) == 2) {
				return errors.New("give a kind and a name, as in `restore confirm volume orders`, or --all")
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				client := pb.NewMaintenanceServiceClient(connection)
				confirm := []*pb.HeldOperations{}
				if all {
					held, err := client.ListHeldOperations(ctx, &pb.ListHeldOperationsRequest{})
					if err != nil {
						return err
					}
					confirm = held.GetObjects()
				} else {
					kinds := map[string]string{"volume": "Volume", "snapshot": "Snapshot"}
					confirm = append(confirm, &pb.HeldOperations{Kind: kinds[strings.ToLower(words[0])], Name: words[1]})
				}
				for _, object := range confirm {
					_, err := client.ConfirmHeldOperations(ctx,
						&pb.ConfirmHeldOperationsRequest{Kind: object.GetKind(), Name: object.GetName()})
					if err != nil {
						return fmt.Errorf("%s %s: %w", strings.ToLower(object.GetKind()), object.GetName(), err)
					}
					_, _ = fmt.Fprintf(command.OutOrStdout(), "%s %s confirmed\n", strings.ToLower(object.GetKind()), object.GetName())
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, "confirm the operations of every object")
	return command
}
