package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func nodeToken(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens by which servers join", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(createToken(g), listTokens(g), revokeToken(g))
	return command
}

func createToken(g *globals) *cobra.Command {
	var lifetime time.Duration
	command := &cobra.Command{
		Use: "create", Short: "Make a token, and print the command by which a server joins with it", Args: cobra.NoArgs,
		Long: "Make a token, and print the command by which a server joins with it. Several servers can join with one token until it ends. A server " +
			"that becomes a member has the rights of an administrator, so treat the token like a key.",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				made, err := pb.NewMembershipServiceClient(connection).CreateJoinToken(ctx, &pb.CreateJoinTokenRequest{Ttl: durationpb.New(lifetime)})
				if err != nil {
					return err
				}
				if g.structured() {
					shown := map[string]any{}
					if err := asMap(made, shown); err != nil {
						return err
					}
					return encode(command.OutOrStdout(), shown, g.output)
				}
				return printJoin(command, made, "")
			})
		},
	}
	command.Flags().DurationVar(&lifetime, "ttl", time.Hour, "how long servers can join with it, from 1m to 24h")
	return command
}

// printJoin prints the command by which a server joins with a token.
func printJoin(command *cobra.Command, made *pb.CreateJoinTokenResponse, flags string) error {
	if len(made.GetJoinAddresses()) == 0 {
		return status.Error(codes.FailedPrecondition, "no control plane admits servers: start one with --join-listen ADDRESS:PORT "+
			"(`man sluice-controlplane-serve`)")
	}
	_, _ = fmt.Fprintf(command.ErrOrStderr(), "The token ends at %s. As root, on a server with the packages:\n\n",
		made.GetExpireTime().AsTime().Format(time.RFC3339))
	_, err := fmt.Fprintf(command.OutOrStdout(), "%s node join %s@%s%s\n", command.Root().Name(), made.GetToken(), made.GetJoinAddresses()[0], flags)
	return err
}

func listTokens(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens that are valid, without their secrets", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				listed, err := pb.NewMembershipServiceClient(connection).ListJoinTokens(ctx, &pb.ListJoinTokensRequest{})
				if err != nil {
					return err
				}
				if g.structured() {
					shown := map[string]any{}
					if err := asMap(listed, shown); err != nil {
						return err
					}
					return encode(command.OutOrStdout(), shown, g.output)
				}
				out := tabwriter.NewWriter(command.OutOrStdout(), 0, 8, 3, ' ', 0)
				_, _ = fmt.Fprintln(out, "ID\tCREATED\tENDS")
				for _, token := range listed.GetTokens() {
					_, _ = fmt.Fprintf(out, "%s\t%s\t%s\n", token.GetId(), token.GetCreateTime().AsTime().Format(time.RFC3339),
						token.GetExpireTime().AsTime().Format(time.RFC3339))
				}
				return out.Flush()
			})
		},
	}
}

func revokeToken(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token at once; servers that have joined with it stay", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, ids []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if _, err := pb.NewMembershipServiceClient(connection).RevokeJoinToken(ctx, &pb.RevokeJoinTokenRequest{Id: ids[0]}); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "token %s revoked\n", ids[0])
				return err
			})
		},
	}
}
