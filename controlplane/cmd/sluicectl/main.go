// Command sluicectl looks at and changes what a Sluice control plane keeps. Installed as kubectl-sluice it is `kubectl
// sluice`, too.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := execute(ctx, newRoot(filepath.Base(os.Args[0])))
	if err != nil {
		report(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}

// execute does what the command line says. What fails before a command has begun is wrong use: Cobra's errors are plain ones where
// arguments, required flags or groups of flags are wrong, or there is no such command.
func execute(ctx context.Context, root *cobra.Command) error {
	begun := false
	root.InitDefaultCompletionCmd() // or it would be added later, unmarked
	mark(root, &begun)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		return usagef("%w\nSee `%s --help`", err, command.CommandPath())
	}
	return err
}

// mark has a command, and all below it, say that it has begun.
func mark(command *cobra.Command, begun *bool) {
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, arguments []string) error {
			*begun = true
			return run(command, arguments)
		}
	}
	for _, below := range command.Commands() {
		mark(below, begun)
	}
}

// newRoot makes the command tree, under the name it was called by.
func newRoot(called string) *cobra.Command {
	name := "sluicectl"
	if plugin, ok := strings.CutPrefix(called, "kubectl-"); ok {
		name = plugin
	}
	options := &globals{}
	checked := func(*cobra.Command, []string) error { return options.checkOutput() }
	root := &cobra.Command{
		Use:           name,
		Short:         "Look at and change what a Sluice control plane keeps",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Of the commands below none has one of its own, which would take its place.
		PersistentPreRunE: checked,
		Long: "Look at and change what a Sluice control plane keeps.\n\nExit codes: 0 done, 1 other, 2 wrong use, " +
			"3 not found, 4 exists or changed meanwhile, 5 not possible now (status --check: alarms), 6 not allowed, " +
			"7 control plane not reachable, 8 time is up, 9 --wait: somebody asked for something else meanwhile.",
	}
	options.add(root)
	for _, kind := range kinds {
		root.AddCommand(nounCommand(kind, options))
	}
	root.AddCommand(applyCommand(options), backupCommand(options), hostConfigCommand(options), doctorCommand(options),
		statusCommand(options), eventsCommand(options), dumpCommand(options), restoreCommand(options))
	return root
}
