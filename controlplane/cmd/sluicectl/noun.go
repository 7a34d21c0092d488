package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// nounCommand is `sluicectl volume ...`: the commands that every kind has, and its own.
func nounCommand(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: k.name, Aliases: k.aliases, Short: "Show and change " + k.messages,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(listCommand(k, g), getCommand(k, g), describeCommand(k, g))
	if !k.observed {
		command.AddCommand(deleteCommand(k, g))
	}
	if k.create != nil {
		command.AddCommand(createCommand(k, g), setCommand(k, g))
	}
	for _, more := range k.more {
		command.AddCommand(more(k, g))
	}
	for _, verb := range command.Commands() {
		k.completeFlags(verb, g)
		k.completeArguments(verb, g)
	}
	return command
}

// with connects, runs and disconnects.
func with(command *cobra.Command, g *globals, run func(context.Context, *grpc.ClientConn) error) error {
	connection, ctx, done, err := g.connect(command.Context(), g.limit(command))
	if err != nil {
		return err
	}
	defer done()
	return run(ctx, connection)
}

func listCommand(k *kind, g *globals) *cobra.Command {
	var labels map[string]string
	var watches bool
	keep := func(proto.Message) bool { return true }
	command := &cobra.Command{
		Use: "list", Short: "List " + k.messages, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if watches {
					selected := func(o proto.Message) bool { return keep(o) && hasLabels(o, labels) }
					return (&watchedList{g: g, k: k, command: command, connection: connection, keep: selected}).run(ctx)
				}
				objects, err := k.list(ctx, connection, labels)
				if err != nil {
					return err
				}
				objects = slices.DeleteFunc(objects, func(o proto.Message) bool { return !keep(o) })
				return g.show(ctx, command, connection, k, objects, false)
			})
		},
	}
	command.Flags().BoolVarP(&watches, "watch", "w", false, "print a line for each change from now on, until interrupted")
	if k.filter != nil {
		keep = k.filter(command)
	}
	if k.observed {
		return command
	}
	command.Flags().StringToStringVarP(&labels, "selector", "l", nil, "only objects with these labels, as key=value")
	return command
}

// hasLabels reports whether an object has all these labels.
func hasLabels(object proto.Message, labels map[string]string) bool {
	for key, value := range labels {
		if have, has := metaOf(object).GetLabels()[key]; !has || have != value {
			return false
		}
	}
	return true
}

func getCommand(k *kind, g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME...", Short: "Show " + k.messages + " by name; without a name, all of them",
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				objects, err := k.named(ctx, connection, names)
				if err != nil && len(objects) == 0 {
					return err
				}
				return errors.Join(g.show(ctx, command, connection, k, objects, len(names) == 1), err)
			})
		},
	}
}

// show prints objects. A table says of each whether hosts can use it.
func (g *globals) show(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, k *kind, objects []proto.Message,
	single bool,
) error {
	var without unusable
	if !g.structured() && !k.observed {
		var err error
		if without, err = unusableOf(ctx, connection, k); err != nil {
			return err
		}
	}
	return g.print(command.OutOrStdout(), k, objects, without, single)
}

func (k *kind) named(ctx context.Context, connection *grpc.ClientConn, names []string) ([]proto.Message, error) {
	if len(names) == 0 {
		return k.list(ctx, connection, nil)
	}
	var objects []proto.Message
	var failed []error
	for _, name := range names {
		object, err := k.get(ctx, connection, name)
		if err != nil {
			failed = append(failed, k.about(name, err))
			continue
		}
		objects = append(objects, object)
	}
	return objects, errors.Join(failed...)
}

// about names the object of an error.
func (k *kind) about(name string, err error) error { return &objectError{k.name + " " + name, err} }

func describeCommand(k *kind, g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "describe NAME", Short: "Show everything about a " + k.message, Args: cobra.ExactArgs(1),
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
	var dryRun, wait, yes bool
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete " + k.messages, Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if !yes && !dryRun {
					used, err := inUse(ctx, connection, k, names)
					if err == nil && len(used) > 0 {
						err = confirm(command, strings.Join(used, "; "))
					}
					if err != nil {
						return err
					}
				}
				var goals []goal
				var failed []error
				for _, name := range names {
					fields := map[string]any{"name": name, "dry_run": dryRun}
					response, err := k.call(ctx, connection, "Delete", k.message, fields)
					if err != nil {
						failed = append(failed, k.about(name, err))
						continue
					}
					object := k.objectIn(response)
					k.printChange(command, object, deleted(object), dryRun)
					if metaOf(object).GetDeleteTime() != nil {
						goals = append(goals, goal{kind: k, from: object, missing: undeleted})
					}
				}
				if !wait || dryRun {
					return errors.Join(failed...)
				}
				last, err := g.waitAll(ctx, command, connection, goals)
				for i := range last {
					k.printChange(command, goals[i].from, "is gone", false)
				}
				return errors.Join(append(failed, err)...)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen; change nothing")
	command.Flags().BoolVar(&yes, "yes", false, "delete objects in use without a question")
	addWait(command, &wait, "wait until they are gone")
	if k.uses != nil {
		command.Long = "Delete " + k.messages + ". If one of them is in use, the command shows what uses it, and asks. Without a terminal it then " +
			"deletes nothing unless --yes is given. Objects that are not in use are deleted without a question."
	}
	return command
}

func deleted(object proto.Message) string {
	if metaOf(object).GetDeleteTime() != nil {
		return "is being deleted"
	}
	return "deleted"
}

func createCommand(k *kind, g *globals) *cobra.Command {
	var dryRun, wait bool
	var labels map[string]string
	command := &cobra.Command{Use: "create NAME", Short: "Create a " + k.message, Args: cobra.ExactArgs(1)}
	build := k.create(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; create nothing")
	command.Flags().StringToStringVar(&labels, "label", nil, "labels, as key=value")
	if k.unmade != nil {
		addWait(command, &wait, "wait until it can be used")
	}
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
			made := goal{kind: k, from: k.objectIn(response), missing: k.unmade, refused: k.refused, replaced: k.replaced}
			if k.needs != nil && wait && !dryRun {
				if err := g.waitForNeeds(ctx, command, connection, k, made); err != nil {
					return err
				}
			}
			return g.waited(ctx, command, connection, made, "created", wait && !dryRun, dryRun)
		})
	}
	return command
}

// waitForNeeds waits for the objects without which a new one cannot be used.
func (g *globals) waitForNeeds(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, k *kind, made goal) error {
	if _, err := g.waitAll(ctx, command, connection, []goal{made}); err != nil {
		return err
	}
	goals, err := k.needs(ctx, connection, made.from)
	if err != nil {
		return err
	}
	_, err = g.waitAll(ctx, command, connection, goals)
	return err
}

// waited reports that a change was made; with wait, once its goal is reached.
func (g *globals) waited(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, wanted goal, what string,
	wait, dryRun bool,
) error {
	object := wanted.from
	if wait {
		last, err := g.waitAll(ctx, command, connection, []goal{wanted})
		if err != nil {
			return err
		}
		object = last[0]
	}
	return g.reportChange(command, wanted.kind, object, what, dryRun)
}

// reportChange reports that a change was made: in a sentence, or by the object in JSON or YAML.
func (g *globals) reportChange(command *cobra.Command, k *kind, object proto.Message, what string, dryRun bool) error {
	if g.structured() {
		return g.print(command.OutOrStdout(), k, []proto.Message{object}, nil, true)
	}
	k.printChange(command, object, what, dryRun)
	return nil
}

func (k *kind) printChange(command *cobra.Command, object proto.Message, what string, dryRun bool) {
	_, _ = fmt.Fprintln(command.OutOrStdout(), k.changeText(object, what, dryRun))
}

// changeText says in a sentence what became of an object.
func (k *kind) changeText(object proto.Message, what string, dryRun bool) string {
	if dryRun {
		what += " (dry run: nothing was changed)"
	}
	return fmt.Sprintf("%s %s %s", k.name, metaOf(object).GetName(), what)
}

// completionTimeout bounds the time for which a completion waits for the control plane.
const completionTimeout = 3 * time.Second

// completeFlags completes the flags that name objects.
func (k *kind) completeFlags(command *cobra.Command, g *globals) {
	for flag, noun := range k.refers {
		if command.Flags().Lookup(flag) == nil {
			continue
		}
		if err := command.RegisterFlagCompletionFunc(flag, kindNamed(noun).completeNames(g)); err != nil {
			panic(err)
		}
	}
}

// completeArguments completes the arguments of a command in the table: first an object of this kind, then objects of the listed kind.
func (k *kind) completeArguments(command *cobra.Command, g *globals) {
	noun, listed := k.arguments[command.Name()]
	if !listed {
		return
	}
	command.ValidArgsFunction = func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		of := k
		if len(arguments) > 0 {
			of = kindNamed(noun)
		}
		if of == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of.completeNames(g)(command, arguments, begun)
	}
}

// completeNames completes names from a list of the control plane.
func (k *kind) completeNames(g *globals) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var names []string
		g.timeout = min(g.timeout, completionTimeout)
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
