package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// pruning deletes the objects that have labels of a selector, and that the files of `apply` do not have.
type pruning struct {
	wanted   bool
	selector map[string]string
	yes      bool
}

func (p *pruning) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&p.wanted, "prune", false, "delete the objects that --selector selects and the files do not have")
	flags.StringToStringVarP(&p.selector, "selector", "l", nil, "with --prune: objects with these labels, as key=value")
	flags.BoolVar(&p.yes, "yes", false, "with --prune: delete without a question")
	command.MarkFlagsRequiredTogether("prune", "selector")
}

// surplus returns the objects to delete, each before the objects that it names.
func (p *pruning) surplus(ctx context.Context, connection *grpc.ClientConn, keep []described) ([]described, error) {
	if !p.wanted {
		return nil, nil
	}
	if len(p.selector) == 0 {
		return nil, usagef("--prune with an empty --selector would delete all objects: name a label, as in -l app=shop")
	}
	kept := map[string]bool{}
	for _, object := range keep {
		kept[object.String()] = true
	}
	var found []described
	for _, k := range kinds {
		if k.observed {
			continue
		}
		objects, err := k.list(ctx, connection, p.selector)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if one := (described{k, object}); !kept[one.String()] && metaOf(object).GetDeleteTime() == nil {
				found = append(found, one)
			}
		}
	}
	found = ordered(found)
	slices.Reverse(found)
	return found, nil
}

// confirm shows the objects to delete and what uses them, and asks.
func (p *pruning) confirm(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, objects []described) error {
	if len(objects) == 0 || p.yes {
		return nil
	}
	var names []string
	used := []string{""}
	for _, object := range objects {
		names = append(names, object.String())
		uses, err := inUse(ctx, connection, object.kind, []string{metaOf(object.message).GetName()})
		if err != nil {
			return err
		}
		used = append(used, uses...)
	}
	return confirm(command, "no file has these objects, and they are to be deleted: "+strings.Join(names, ", ")+strings.Join(used, "; "))
}

// prune deletes objects. The control plane refuses to delete an object that another one names, so it first waits until the deletion of
// that one is complete.
func (g *globals) prune(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, objects []described, dryRun bool) error {
	var failed []error
	var pending []goal
	for _, object := range objects {
		if dryRun {
			g.printPruned(command, object, "deleted", true)
			continue
		}
		var err error
		if pending, err = g.awaitDependents(ctx, command, connection, object, pending); err != nil {
			return errors.Join(append(failed, err)...)
		}
		name := metaOf(object.message).GetName()
		response, err := object.kind.call(ctx, connection, "Delete", object.kind.message,
			map[string]any{"name": name, "options": &pb.DeleteOptions{Uid: metaOf(object.message).GetUid()}})
		if err != nil {
			failed = append(failed, object.kind.about(name, err))
			continue
		}
		last := object.kind.objectIn(response)
		g.printPruned(command, object, deleted(last), false)
		if metaOf(last).GetDeleteTime() != nil {
			pending = append(pending, goal{kind: object.kind, from: last, missing: undeleted})
		}
	}
	return errors.Join(failed...)
}

// awaitDependents waits until the objects that name this one are gone, and returns the other pending deletions.
func (g *globals) awaitDependents(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, object described, pending []goal,
) ([]goal, error) {
	var others []goal
	for _, deletion := range pending {
		if !slices.Contains(needs(deletion.from), object.String()) {
			others = append(others, deletion)
			continue
		}
		if _, err := g.waitAll(ctx, command, connection, []goal{deletion}); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// printPruned prints a deletion; on standard error if standard output has the applied objects for a program.
func (g *globals) printPruned(command *cobra.Command, object described, what string, dryRun bool) {
	var to io.Writer = command.OutOrStdout()
	if g.structured() {
		to = command.ErrOrStderr()
	}
	_, _ = fmt.Fprintln(to, object.kind.changeText(object.message, what, dryRun))
}
