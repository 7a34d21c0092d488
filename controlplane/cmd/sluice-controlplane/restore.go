package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

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
		Long: "Make the data of an embedded etcd from what `sluicectl backup` wrote. The directory must hold no etcd yet: " +
			"move " + etcd.Directory + " out of it first, and leave what is beside that. The key file is not in a backup and must be the " +
			"one of that time. What was changed after the backup is gone: gateways go on serving, and tell the control plane what they " +
			"own, and none of them shows a LUN as another volume than hosts may still know it for. Numbers of gateways, portal groups and " +
			"ports go on 4096 above those of the backup, and of every earlier restore that is noted in restored-numbers.json in the " +
			"directory, or beside the backup, as its name with .restored: keep these. The system id of the backup stays; where the backup is older " +
			"than system ids, the restored store gets the one that " + systemFile + " in the directory names, so that gateways accept it.\n\n" +
			"An external etcd is restored by its own tools, with all replicas stopped: `etcdutl snapshot restore --mark-compacted " +
			"--bump-revision=N`, where N is more than all changes since the backup, say the milliseconds since 1970 (`date +%s000`), and the " +
			"same for all members: with different ones they would never agree. Then this command, with --etcd-endpoints and without --from, " +
			"tells the store so, before a replica is started. It keeps its note in --data-dir.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if (from == "") == (len(s.etcdEndpoints) == 0) {
				return errors.New("give either --from, for an embedded etcd, or --etcd-endpoints of an etcd that was restored")
			}
			note, into := noteBeside(s.dataDir, from), s.dataDir
			restore := func(ctx context.Context) (int, string, error) { return restoreEmbedded(ctx, from, s.dataDir, note) }
			if from == "" {
				restore, into = func(ctx context.Context) (int, string, error) { return s.restoredOutside(ctx, note) }, "the external etcd"
			}
			volumes, missing, err := restore(command.Context())
			if err != nil {
				return err
			}
			if missing != "" {
				_, _ = fmt.Fprintf(command.ErrOrStderr(), "%s could not be written: copy %s there, or keep it with the backup\n", missing, note.paths[0])
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

// restoreEmbedded puts the data in its place once it is whole, and noted: what is not could give an epoch or a number twice.
func restoreEmbedded(ctx context.Context, from, directory string, note numbersNote) (volumes int, missing string, err error) {
	place, aside := filepath.Join(directory, etcd.Directory), filepath.Join(directory, staging)
	if _, err := os.Stat(place); err == nil {
		return 0, "", fmt.Errorf("%s holds data already: move %s away first, and leave what is beside it", directory, place)
	}
	earlier, err := note.read()
	if err != nil {
		return 0, "", err
	}
	if err := os.RemoveAll(aside); err != nil { // of a restore that was interrupted
		return 0, "", err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := etcd.Restore(from, aside, time.Now()); err != nil {
		return 0, "", err
	}
	embedded, err := etcd.StartEmbedded(ctx, aside, etcd.FatalLog(directory, slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return 0, "", err
	}
	volumes, missing, err = noteRestored(ctx, embedded.Client, earlier, note)
	if err == nil {
		err = keepSystem(ctx, embedded.Client, directory)
	}
	embedded.Close()
	if err != nil {
		return 0, "", err
	}
	return volumes, missing, os.Rename(filepath.Join(aside, etcd.Directory), place)
}

// keepSystem has a restored store be the system that the data directory belongs to, where that is noted.
func keepSystem(ctx context.Context, client *clientv3.Client, directory string) error {
	note, err := readSystemNote(directory)
	if err != nil || note.ID == "" {
		return err
	}
	if err := store.KeepSystem(ctx, client, note.Cluster, note.ID); err != nil {
		return fmt.Errorf("%w. The expected system is noted in %s", err, systemPath(directory))
	}
	return nil
}

func noteRestored(ctx context.Context, client *clientv3.Client, earlier store.Numbers, note numbersNote) (int, string, error) {
	volumes, given, err := store.Restored(ctx, client, time.Now(), earlier)
	if err != nil {
		return 0, "", err
	}
	earlier.Above(given)
	missing, err := note.write(earlier)
	return volumes, missing, err
}

func (s *settings) restoredOutside(ctx context.Context, note numbersNote) (int, string, error) {
	earlier, err := note.read()
	if err != nil {
		return 0, "", err
	}
	client, closeClient, err := s.connect(ctx, func(error) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, "", err
	}
	defer closeClient()
	if err := keepSystem(ctx, client, s.dataDir); err != nil {
		return 0, "", err
	}
	return noteRestored(ctx, client, earlier, note)
}
