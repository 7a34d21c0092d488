package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// changeableKind finds a kind whose objects users change. Errors: usageError.
func changeableKind(name string) (*kind, error) {
	k := kindNamed(name)
	if k != nil && !k.observed {
		return k, nil
	}
	return nil, usagef("%q is no kind of objects that can be changed: %s are possible", name, strings.Join(changeableNouns(), ", "))
}

// changeableNouns returns the names of the kinds whose objects users change.
func changeableNouns() []string {
	var names []string
	for _, k := range kinds {
		if !k.observed {
			names = append(names, k.name)
		}
	}
	return names
}

// completeObject completes the arguments KIND and NAME.
func completeObject(g *globals) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) == 0 {
			return changeableNouns(), cobra.ShellCompDirectiveNoFileComp
		}
		if k := kindNamed(arguments[0]); k != nil && len(arguments) == 1 {
			return k.completeNames(g)(command, arguments, begun)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func labelCommand(g *globals) *cobra.Command {
	var dryRun bool
	command := &cobra.Command{
		Use: "label KIND NAME KEY=VALUE|KEY-...", Short: "Add, change and remove labels of an object", Args: cobra.MinimumNArgs(3),
		Long: "Add, change and remove labels of an object: KEY=VALUE sets a label, KEY- removes it. Other labels remain. `list` and `apply " +
			"--prune` select objects by their labels. Without any change the command prints \"unchanged\".",
		ValidArgsFunction: completeObject(g),
		RunE: func(command *cobra.Command, arguments []string) error {
			k, err := changeableKind(arguments[0])
			if err != nil {
				return err
			}
			wanted, err := readLabels(arguments[2:])
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				return g.modify(ctx, command, connection, k, arguments[1], relabelled(wanted), false, dryRun)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	return command
}

// readLabels reads arguments as KEY=VALUE and KEY-. The value of a label to remove is nil.
func readLabels(arguments []string) (map[string]*string, error) {
	wanted := map[string]*string{}
	for _, text := range arguments {
		key, value, set := strings.Cut(text, "=")
		given := &value
		if !set {
			given = nil
			if key, set = strings.CutSuffix(text, "-"); !set {
				return nil, usagef("label %q: write KEY=VALUE, or KEY- to remove the label", text)
			}
		}
		if key == "" {
			return nil, usagef("label %q has no key", text)
		}
		if _, twice := wanted[key]; twice {
			return nil, usagef("label %q is given twice", key)
		}
		wanted[key] = given
	}
	return wanted, nil
}

func relabelled(wanted map[string]*string) modification {
	return modification{fields: []string{"meta.labels"}, apply: func(object proto.Message) ([]string, error) {
		meta := metaOf(object)
		if meta.Labels == nil {
			meta.Labels = map[string]string{}
		}
		var changes []string
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			value := wanted[key]
			have, has := meta.GetLabels()[key]
			switch {
			case value == nil && has:
				delete(meta.Labels, key)
				changes = append(changes, "label "+key+" removed")
			case value != nil && (!has || have != *value):
				meta.Labels[key] = *value
				changes = append(changes, "label "+key+"="+*value)
			}
		}
		return changes, nil
	}}
}
