package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// nounCommand is `sluicectl volume ...`: the verbs that every noun has, and its own.
func nounCommand(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: k.name, Aliases: k.aliases, Short: "Look at and change " + k.messages,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(listCommand(k, g), getCommand(k, g), describeCommand(k, g), deleteCommand(k, g))
	if k.create != nil {
		command.AddCommand(createCommand(k, g))
	}
	for _, more := range k.more {
		command.AddCommand(more(k, g))
	}
	return command
}

// with connects, runs and disconnects.
func with(command *cobra.Command, g *globals, run func(context.Context, *grpc.ClientConn) error) error {
	connection, ctx, done, err := g.connect(command.Context())
	if err != nil {
		return err
	}
	defer done()
	return run(ctx, connection)
}

func listCommand(k *kind, g *globals) *cobra.Command {
	var labels map[string]string
	command := &cobra.Command{
		Use: "list", Short: "List " + k.messages, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				objects, err := k.list(ctx, connection, labels)
				if err != nil {
					return err
				}
				return g.print(command.OutOrStdout(), k, objects, false)
			})
		},
	}
	command.Flags().StringToStringVarP(&labels, "selector", "l", nil, "only objects with these labels, as key=value")
	return command
}

func getCommand(k *kind, g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME...", Short: "Show " + k.messages + " by name; without a name, all of them",
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				objects, err := k.named(ctx, connection, names)
				if err != nil {
					return err
				}
				return g.print(command.OutOrStdout(), k, objects, len(names) == 1)
			})
		},
	}
}

func (k *kind) named(ctx context.Context, connection *grpc.ClientConn, names []string) ([]proto.Message, error) {
	if len(names) == 0 {
		return k.list(ctx, connection, nil)
	}
	var objects []proto.Message
	for _, name := range names {
		object, err := k.get(ctx, connection, name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func describeCommand(k *kind, g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "describe NAME", Short: "Show all there is about a " + k.message, Args: cobra.ExactArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				object, err := k.get(ctx, connection, names[0])
				if err != nil {
					return err
				}
				return describe(command.OutOrStdout(), k, object)
			})
		},
	}
}

func deleteCommand(k *kind, g *globals) *cobra.Command {
	var dryRun bool
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete " + k.messages, Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				for _, name := range names {
					fields := map[string]any{"name": name, "dry_run": dryRun}
					response, err := k.call(ctx, connection, "Delete", k.message, fields)
					if err != nil {
						return err
					}
					k.said(command, k.objectIn(response), deleted(k.objectIn(response)), dryRun)
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "say what would happen; change nothing")
	return command
}

func deleted(object proto.Message) string {
	if metaOf(object).GetDeleteTime() != nil {
		return "is being deleted"
	}
	return "deleted"
}

func createCommand(k *kind, g *globals) *cobra.Command {
	var dryRun bool
	var labels map[string]string
	command := &cobra.Command{Use: "create NAME", Short: "Create a " + k.message, Args: cobra.ExactArgs(1)}
	build := k.create(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "have it validated; create nothing")
	command.Flags().StringToStringVar(&labels, "label", nil, "labels, as key=value")
	command.RunE = func(command *cobra.Command, names []string) error {
		object, err := build(&pb.ObjectMeta{Name: names[0], Labels: labels})
		if err != nil {
			return err
		}
		return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
			response, err := k.call(ctx, connection, "Create", k.message, map[string]any{k.field: object, "dry_run": dryRun})
			if err != nil {
				return err
			}
			return g.done(command, k, k.objectIn(response), "created", dryRun)
		})
	}
	return command
}

// done tells that a change was made: in a sentence, or by the object where JSON or YAML is asked for.
func (g *globals) done(command *cobra.Command, k *kind, object proto.Message, what string, dryRun bool) error {
	if g.output == "json" || g.output == "yaml" {
		return g.print(command.OutOrStdout(), k, []proto.Message{object}, true)
	}
	k.said(command, object, what, dryRun)
	return nil
}

func (k *kind) said(command *cobra.Command, object proto.Message, what string, dryRun bool) {
	if dryRun {
		what += " (dry run: nothing was changed)"
	}
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s %s %s\n", k.name, metaOf(object).GetName(), what)
}

// completeNames completes names by asking the control plane.
func (k *kind) completeNames(g *globals) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var names []string
		_ = with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
			objects, err := k.list(ctx, connection, nil)
			for _, object := range objects {
				if name := metaOf(object).GetName(); strings.HasPrefix(name, begun) {
					names = append(names, name)
				}
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
