package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func backupCommand(g *globals) *cobra.Command {
	kept := backupDirectory{}
	command := &cobra.Command{
		Use: "backup FILE | --directory DIRECTORY", Args: cobra.MaximumNArgs(1),
		Short: "Save a consistent copy of the control plane's store (not the volumes' data)",
		Long: "Save a consistent copy of the control plane's store, for `sluice-controlplane restore`. Secrets in it are " +
			"encrypted: keep the key file, too, elsewhere. The volumes' data is no part of it. The control plane records the time: " +
			"if the last backup is old, `doctor` says so.\n\n" +
			"With --directory, the name of the file has the time in UTC, and older files of such names are removed after success, except --keep.",
		RunE: func(command *cobra.Command, names []string) error {
			if (len(names) == 1) == (kept.path != "") {
				return usagef("give either FILE or --directory")
			}
			if kept.keep < 1 {
				return usagef("--keep %d: it is at least 1", kept.keep)
			}
			name := kept.next(time.Now())
			if len(names) == 1 {
				name = names[0]
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				written, err := backup(ctx, pb.NewMaintenanceServiceClient(connection), name)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "%d bytes in %s\n", written, name)
				if err != nil || kept.path == "" {
					return err
				}
				return kept.removeOld()
			})
		},
	}
	command.Flags().StringVar(&kept.path, "directory", "", "existing directory for the file, in the place of FILE")
	command.Flags().IntVar(&kept.keep, "keep", defaultKept, "number of files that stay in --directory")
	return command
}

// backup writes to another name and renames: the file of that name is complete, or the previous one.
func backup(ctx context.Context, client pb.MaintenanceServiceClient, name string) (int64, error) {
	stream, err := client.Backup(ctx, &pb.BackupRequest{})
	if err != nil {
		return 0, err
	}
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // closes again after success
	var written int64
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			_ = os.Remove(name + ".new")
			return 0, err
		}
		n, err := file.Write(part.GetChunk())
		written += int64(n)
		if err != nil {
			return 0, err
		}
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	return written, os.Rename(name+".new", name)
}
