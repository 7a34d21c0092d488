package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/store"
)

// staging is where data is made, below its directory, until it is whole.
const staging = "restoring"

func restoreCommand() *cobra.Command {
	var from string
	s := &settings{}
	command := &cobra.Command{
		Use:   "restore",
		Short: "Make the data of an embedded etcd from a backup",
		Long: "Make the data of an embedded etcd from what `sluicectl backup` wrote. The directory must hold no data yet: " +
			"move the old away first. The key file is not in a backup and must be the one of that time. What was changed " +
			"after the backup is gone: gateways go on serving, and tell the control plane what they own. Numbers of gateways, portal groups " +
			"and ports go on 4096 above those of the backup, so that none is given twice; which LUN numbers were given is not known: have the " +
			"hosts of a target rescan before a volume is mapped under a number that may have been another's.\n\n" +
			"An external etcd is restored by its own tools, with all replicas stopped: `etcdutl snapshot restore --mark-compacted " +
			"--bump-revision=N`, where N is more than all changes since the backup, say the milliseconds since 1970 (`date +%s000`), and the " +
			"same for all members: with different ones they would never agree. " +
			"Then this command, with --etcd-endpoints and without --from, tells the store so, before a replica is started.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if (from == "") == (len(s.etcdEndpoints) == 0) {
				return errors.New("give either --from, for an embedded etcd, or --etcd-endpoints of an etcd that was restored")
			}
			restore := func(ctx context.Context) (int, error) { return restoreEmbedded(ctx, from, s.dataDir) }
			into := s.dataDir
			if from == "" {
				restore, into = s.restoredOutside, "the external etcd"
			}
			volumes, err := restore(command.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "restored into %s: epochs and orders of %d volumes go on above all lost ones\n",
				into, volumes)
			return err
		},
	}
	command.Flags().StringVar(&from, "from", "", "the backup")
	command.Flags().StringVar(&s.dataDir, "data-dir", "/var/lib/sluice-controlplane", "directory to make the data in")
	s.externalFlags(command.Flags())
	return command
}

// restoreEmbedded puts the data in its place once it is whole: what is not could give an epoch twice.
func restoreEmbedded(ctx context.Context, from, directory string) (int, error) {
	place, aside := filepath.Join(directory, etcd.Directory), filepath.Join(directory, staging)
	if _, err := os.Stat(place); err == nil {
		return 0, fmt.Errorf("%s holds data already: move it away first", directory)
	}
	if err := os.RemoveAll(aside); err != nil { // of a restore that was interrupted
		return 0, err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := etcd.Restore(from, aside, time.Now()); err != nil {
		return 0, err
	}
	volumes, err := noteRestored(ctx, aside)
	if err != nil {
		return 0, err
	}
	return volumes, os.Rename(filepath.Join(aside, etcd.Directory), place)
}

func noteRestored(ctx context.Context, directory string) (int, error) {
	embedded, err := etcd.StartEmbedded(ctx, directory, zap.NewNop())
	if err != nil {
		return 0, err
	}
	defer embedded.Close()
	return store.Restored(ctx, embedded.Client, time.Now())
}

func (s *settings) restoredOutside(ctx context.Context) (int, error) {
	client, closeClient, err := s.connect(ctx, func(error) {})
	if err != nil {
		return 0, err
	}
	defer closeClient()
	return store.Restored(ctx, client, time.Now())
}
