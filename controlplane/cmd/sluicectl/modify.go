package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// modification is a change of the spec or the labels of one object.
type modification struct {
	// fields are the paths that it changes, as an update mask names them.
	fields []string
	// apply changes an object, and returns each change as text. It returns none if the object is already as wanted.
	apply func(proto.Message) ([]string, error)
	// missing returns what an object still lacks before the change has its effect (goal); nil: nothing can be waited for.
	missing func(proto.Message) string
	// needs returns what other objects need then; nil: none.
	needs func(context.Context, *grpc.ClientConn) ([]goal, error)
}

// changing adapts a function of the kind's own type for modification.apply.
func changing[M proto.Message](change func(M) ([]string, error)) func(proto.Message) ([]string, error) {
	return func(object proto.Message) ([]string, error) { return change(object.(M)) }
}

// modifyAttempts bounds how often a change is repeated because another writer came first, as in the control plane.
const modifyAttempts = 16

// modify reads an object, changes it, and stores it, unless its version has changed since. After such a conflict it begins again. It
// returns the object and its changes.
func (k *kind) modify(ctx context.Context, connection *grpc.ClientConn, name string, m modification, dryRun bool,
) (proto.Message, []string, error) {
	for attempt := 1; ; attempt++ {
		object, err := k.get(ctx, connection, name)
		if err != nil {
			return nil, nil, err
		}
		changes, err := m.apply(object)
		if err != nil || len(changes) == 0 {
			return object, nil, err
		}
		response, err := k.call(ctx, connection, "Update", k.message, map[string]any{
			k.field: object, "update_mask": &fieldmaskpb.FieldMask{Paths: m.fields}, "dry_run": dryRun})
		if status.Code(err) == codes.Aborted && attempt < modifyAttempts {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		return k.objectIn(response), changes, nil
	}
}

// undone returns whether a later request reverted a modification (goal.replaced).
func (m modification) undone(_, now proto.Message) string {
	if changes, err := m.apply(proto.Clone(now)); err != nil || len(changes) > 0 {
		return "another request reverted the change meanwhile"
	}
	return ""
}

// modifyCommand makes a command that changes the object of its first argument. build reads the other arguments. waits is the help of
// --wait; empty: the command has no --wait.
func modifyCommand(k *kind, g *globals, command *cobra.Command, waits string, build func([]string) (modification, error)) *cobra.Command {
	var dryRun, wait bool
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	if waits != "" {
		addWait(command, &wait, waits)
	}
	command.RunE = func(command *cobra.Command, arguments []string) error {
		m, err := build(arguments[1:])
		if err != nil {
			return err
		}
		return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
			return g.modify(ctx, command, connection, k, arguments[0], m, wait, dryRun)
		})
	}
	return command
}

// modify makes a modification, reports it, and with wait returns once it has its effect.
func (g *globals) modify(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, k *kind, name string, m modification,
	wait, dryRun bool,
) error {
	object, changes, err := k.modify(ctx, connection, name, m, dryRun)
	if err != nil {
		return err
	}
	what := "unchanged"
	if len(changes) > 0 {
		what = "updated: " + strings.Join(changes, ", ")
	}
	wait = wait && !dryRun
	changed := goal{kind: k, from: object, missing: m.missing, replaced: m.undone}
	if wait && m.needs != nil {
		if _, err := g.waitAll(ctx, command, connection, []goal{changed}); err != nil {
			return err
		}
		goals, err := m.needs(ctx, connection)
		if err != nil {
			return err
		}
		if _, err := g.waitAll(ctx, command, connection, goals); err != nil {
			return err
		}
	}
	return g.waited(ctx, command, connection, changed, what, wait, dryRun)
}
