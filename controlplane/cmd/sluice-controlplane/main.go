// Command sluice-controlplane serves the control plane's API and maintains its store.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// version is set by .ci/compile-go through the linker.
var version = "0"

// endTimeout bounds the time that a process has to end after a stop was requested or a part of it failed. Hanging disks can
// exceed it.
const endTimeout = 20 * time.Second

// endsWithin ends the process if it still runs endTimeout after the context has ended.
func endsWithin(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		time.AfterFunc(endTimeout, func() {
			fmt.Fprintf(os.Stderr, "sluice-controlplane: not stopped within %s (%v): the process ends now; all acknowledged changes are stored\n",
				endTimeout, context.Cause(ctx))
			os.Exit(1)
		})
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	endsWithin(ctx)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-controlplane:", err)
		os.Exit(1)
	}
}

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice-controlplane",
		Short:         "The control plane of Sluice: objects, ownership, failover",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), certsCommand(), keyCommand(), restoreCommand())
	return root
}
