package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/store"
)

// staging is the subdirectory in which the data is created until it is complete.
const staging = "restoring"

func restoreCommand() *cobra.Command {
	var from string
	s := &settings{}
	command := &cobra.Command{
		Use:   "restore",
		Short: "Restore the store from a backup",
		Long: `Make the data of an embedded etcd from a file that "sluicectl backup" wrote.

Before:
1. Stop the control plane.
2. Move the directory ` + etcd.Directory + ` out of --data-dir. Leave the other files there.
3. Provide the key file of the time of the backup. A backup does not contain it.

Afterwards:
- Changes since the backup are lost. Gateways continue to serve and report the volumes that they own. No gateway exports a volume under
  a LUN number that hosts may know for another volume.
- New numbers of gateways, portal groups and ports begin 4096 above those of the backup and of earlier restores. The files
  restored-numbers.json in the directory and NAME.restored beside the backup record these restores: keep them.
- The system id is that of the backup. If a backup of an older release has none, it is that of the file ` + systemFile + ` in the directory.
- Operations that were pending in the backup (rollback, deletion, copy, move, resize) wait for "sluicectl restore confirm".
  "sluicectl restore list" shows them.

An external etcd is restored by its own tools:
1. Stop all replicas.
2. Run "etcdutl snapshot restore --mark-compacted --bump-revision=N" for each member. N is larger than the number of changes since the
   backup, for example the milliseconds since 1970 ("date +%s000"). It is the same for all members, or they never agree.
3. Run this command with --etcd-endpoints and without --from. It records the restore in the store and in --data-dir.
4. Start the replicas.`,
		Example: "  sluice-controlplane restore --from sluice-backup\n" +
			"  sluice-controlplane restore --etcd-endpoints https://192.0.2.1:2379",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if (from == "") == (len(s.etcdEndpoints) == 0) {
				return errors.New("give either --from, for an embedded etcd, or --etcd-endpoints of an etcd that was restored")
			}
			note, into := noteBeside(s.dataDir, from), s.dataDir
			restore := func(ctx context.Context) (restored, error) { return restoreEmbedded(ctx, from, s.dataDir, note) }
			if from == "" {
				restore, into = func(ctx context.Context) (restored, error) { return s.restoredOutside(ctx, note) }, "the external etcd"
			}
			done, err := restore(command.Context())
			if err != nil {
				return err
			}
			if done.missing != "" {
				_, _ = fmt.Fprintf(command.ErrOrStderr(), "%s could not be written: copy %s there, or keep it with the backup\n", done.missing, note.paths[0])
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "restored into %s: epochs and orders of %d volumes go on above all lost ones\n",
				into, done.volumes)
			if err != nil {
				return err
			}
			return done.printHeld(command.OutOrStdout())
		},
	}
	command.Flags().StringVar(&from, "from", "", "file of the backup")
	command.Flags().StringVar(&s.dataDir, "data-dir", "/var/lib/sluice-controlplane", "directory of the embedded etcd")
	s.externalFlags(command.Flags())
	return command
}

// restored is the result of a restore.
type restored struct {
	volumes int
	// missing is the path where the note could not be written; empty: it was written everywhere.
	missing string
	// held are the operations that were pending in the backup, by system.
	held map[string][]store.HeldObject
}

// printHeld lists the operations that wait for a confirmation.
func (r restored) printHeld(to io.Writer) error {
	for _, system := range slices.Sorted(maps.Keys(r.held)) {
		for _, object := range r.held[system] {
			_, err := fmt.Fprintf(to, "held: %s %s (--cluster %s): %s\n", strings.ToLower(string(object.Kind)), object.Name, system,
				strings.Join(object.Operations, ", "))
			if err != nil {
				return err
			}
		}
		if len(r.held[system]) > 0 {
			_, err := fmt.Fprintln(to, "these were pending in the backup and are not carried out before `sluicectl restore confirm`")
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreEmbedded moves the data to its final place only when it is complete and recorded. Otherwise an epoch or a number could
// be assigned twice.
func restoreEmbedded(ctx context.Context, from, directory string, note numbersNote) (done restored, err error) {
	place, aside := filepath.Join(directory, etcd.Directory), filepath.Join(directory, staging)
	if _, err := os.Stat(place); err == nil {
		return done, fmt.Errorf("%s holds data already: move %s away first, and leave the other files in the directory", directory, place)
	}
	earlier, err := note.read()
	if err != nil {
		return done, err
	}
	if err := os.RemoveAll(aside); err != nil { // left by an interrupted restore
		return done, err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := etcd.Restore(from, aside, time.Now()); err != nil {
		return done, err
	}
	embedded, err := etcd.StartEmbedded(ctx, aside, etcd.FatalLog(directory, slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return done, err
	}
	done, err = noteRestored(ctx, embedded.Client, earlier, note)
	if err == nil {
		err = keepSystem(ctx, embedded.Client, directory)
	}
	embedded.Close()
	if err != nil {
		return done, err
	}
	return done, os.Rename(filepath.Join(aside, etcd.Directory), place)
}

// keepSystem gives a restored store the system id of the data directory, if the directory has a note.
func keepSystem(ctx context.Context, client *clientv3.Client, directory string) error {
	note, err := readSystemNote(directory)
	if err != nil || note.ID == "" {
		return err
	}
	if err := store.KeepSystem(ctx, client, note.Cluster, note.ID); err != nil {
		return fmt.Errorf("%w. The expected system id is in %s", err, systemPath(directory))
	}
	return nil
}

func noteRestored(ctx context.Context, client *clientv3.Client, earlier store.Numbers, note numbersNote) (restored, error) {
	volumes, given, err := store.Restored(ctx, client, time.Now(), earlier)
	if err != nil {
		return restored{}, err
	}
	earlier.Above(given)
	done := restored{volumes: volumes}
	if done.missing, err = note.write(earlier); err != nil {
		return done, err
	}
	done.held, err = store.HeldIn(ctx, client)
	return done, err
}

func (s *settings) restoredOutside(ctx context.Context, note numbersNote) (restored, error) {
	earlier, err := note.read()
	if err != nil {
		return restored{}, err
	}
	opened, err := s.connect(ctx, func(error) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		return restored{}, err
	}
	defer opened.close()
	if err := keepSystem(ctx, opened.client, s.dataDir); err != nil {
		return restored{}, err
	}
	return noteRestored(ctx, opened.client, earlier, note)
}
