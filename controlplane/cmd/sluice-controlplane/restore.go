package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

func restoreCommand() *cobra.Command {
	var from, dataDir string
	command := &cobra.Command{
		Use:   "restore",
		Short: "Make the data of an embedded etcd from a backup",
		Long: "Make the data of an embedded etcd from what `sluicectl backup` wrote. The directory must hold no data yet: " +
			"move the old away first. The key file is not in a backup and must be the one of that time. What was changed " +
			"after the backup is gone: gateways go on serving, and tell the control plane what they own.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := os.Stat(filepath.Join(dataDir, etcd.Directory)); err == nil {
				return fmt.Errorf("%s holds data already: move it away first", dataDir)
			}
			if err := etcd.Restore(from, dataDir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "restored into %s\n", dataDir)
			return err
		},
	}
	command.Flags().StringVar(&from, "from", "", "the backup")
	command.Flags().StringVar(&dataDir, "data-dir", "/var/lib/sluice-controlplane", "directory to make the data in")
	_ = command.MarkFlagRequired("from") // the flag is there
	return command
}
