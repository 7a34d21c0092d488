package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func restoreCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "restore", Short: "List, confirm and discard the operations that a restored backup left pending",
		Long: "After `sluice-controlplane restore`, operations that were pending in the backup (rollback, deletion, copy, move, resize) are " +
			"held: their results may exist already, or may no longer be wanted. They are executed only after `sluicectl restore confirm`; `sluicectl restore discard` removes them.",
		Args: cobra.NoArgs,
	}
	command.AddCommand(heldCommand(g), decideCommand(g, confirming), decideCommand(g, discarding))
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
				if g.structured() {
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

// decision is a command that confirms or discards held operations.
type decision struct {
	use, short, done, everything string
	decide                       func(context.Context, pb.MaintenanceServiceClient, *pb.HeldOperations) error
}

var confirming = decision{use: "confirm", short: "Confirm the held operations of one object, or of every object with --all: the control plane executes them",
	done: "confirmed", everything: "confirm the operations of every object",
	decide: func(ctx context.Context, client pb.MaintenanceServiceClient, of *pb.HeldOperations) error {
		_, err := client.ConfirmHeldOperations(ctx, &pb.ConfirmHeldOperationsRequest{Kind: of.GetKind(), Name: of.GetName()})
		return err
	}}

var discarding = decision{use: "discard", short: "Discard the held operations of one object, or of every object with --all: the control plane " +
	"forgets them", done: "discarded", everything: "discard the operations of every object",
	decide: func(ctx context.Context, client pb.MaintenanceServiceClient, of *pb.HeldOperations) error {
		_, err := client.DiscardHeldOperations(ctx, &pb.DiscardHeldOperationsRequest{Kind: of.GetKind(), Name: of.GetName()})
		return err
	}}

func decideCommand(g *globals, d decision) *cobra.Command {
	all := false
	command := &cobra.Command{
		Use: d.use + " [volume|snapshot NAME]", Args: cobra.MaximumNArgs(2), Short: d.short,
		RunE: func(command *cobra.Command, words []string) error {
			if all == (len(words) == 2) || len(words) == 1 {
				return fmt.Errorf("give a kind and a name, as in `restore %s volume orders`, or --all", d.use)
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				client := pb.NewMaintenanceServiceClient(connection)
				decided := []*pb.HeldOperations{}
				if all {
					held, err := client.ListHeldOperations(ctx, &pb.ListHeldOperationsRequest{})
					if err != nil {
						return err
					}
					decided = held.GetObjects()
				} else {
					kinds := map[string]string{"volume": "Volume", "snapshot": "Snapshot"}
					decided = append(decided, &pb.HeldOperations{Kind: kinds[strings.ToLower(words[0])], Name: words[1]})
				}
				for _, object := range decided {
					if err := d.decide(ctx, client, object); err != nil {
						return fmt.Errorf("%s %s: %w", strings.ToLower(object.GetKind()), object.GetName(), err)
					}
					_, _ = fmt.Fprintf(command.OutOrStdout(), "%s %s %s\n", strings.ToLower(object.GetKind()), object.GetName(), d.done)
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, d.everything)
	return command
}
