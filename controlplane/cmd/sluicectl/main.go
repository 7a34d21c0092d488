// Command sluicectl shows and changes the objects of a Sluice control plane. Installed as kubectl-sluice it is also `kubectl
// sluice`, which finds the control plane by the kubeconfig.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by .ci/compile-go through the linker.
var version = "0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := execute(ctx, newRoot(filepath.Base(os.Args[0])))
	if err != nil {
		report(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}

// execute runs the command line. An error before a command has begun is wrong use: Cobra returns plain errors for wrong
// arguments, required flags or groups of flags, and for unknown commands.
func execute(ctx context.Context, root *cobra.Command) error {
	begun := false
	root.InitDefaultCompletionCmd() // otherwise Cobra would add it later, unmarked
	mark(root, &begun)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		return usagef("%w\nSee `%s --help`", err, command.CommandPath())
	}
	return namingFlags(err, command)
}

// mark makes a command and its subcommands record that they have begun.
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

// versionCommand is --version for users who expect a command.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program; status shows that of the control plane", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), command.Root().Name(), "version", version)
			return err
		},
	}
}

// newRoot returns the command tree, under the name by which it was called. A plugin of kubectl shows its name as users type it.
func newRoot(called string) *cobra.Command {
	name, shown := "sluicectl", "sluicectl"
	plugin, isPlugin := strings.CutPrefix(called, "kubectl-")
	if isPlugin {
		name, shown = plugin, "kubectl "+plugin
	}
	options := newGlobals(isPlugin)
	checked := func(*cobra.Command, []string) error { return options.checkOutput() }
	root := &cobra.Command{
		Use:           name,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: shown},
		Short:         "Show and change the objects of a Sluice control plane",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// No subcommand has its own, which would replace this one.
		PersistentPreRunE: checked,
		Long: "Show and change the objects of a Sluice control plane.\n\nExit codes: 0 done, 1 other, 2 wrong use, " +
			"3 not found, 4 exists or changed meanwhile, 5 not possible now (status --check: findings), 6 not allowed, " +
			"7 control plane not reachable, 8 --timeout is over, 9 --wait: another request replaced this one. diff: 1 differences, 10 other.",
	}
	options.add(root)
	for _, kind := range kinds {
		root.AddCommand(nounCommand(kind, options))
	}
	root.AddCommand(applyCommand(options), diffCommand(options), editCommand(options), labelCommand(options), backupCommand(options),
		diskCommand(options), hostConfigCommand(options), doctorCommand(options), explainCommand(options), nodeCommand(options), accountCommand(options), versionCommand(),
		statusCommand(options), topCommand(options), eventsCommand(options), dumpCommand(options), restoreCommand(options))
	if !isPlugin { // kubeconfig has the contexts of the plugin
		root.AddCommand(contextCommand(options))
	}
	addExamples(root)
	return root
}
