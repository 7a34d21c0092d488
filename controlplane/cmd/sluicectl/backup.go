package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func backupCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Args: cobra.ExactArgs(1),
		Short: "Save a consistent copy of the control plane's store (not the volumes' data)",
		Long: "Save a consistent copy of the control plane's store, for `sluice-controlplane restore`. Secrets in it are " +
			"encrypted: keep the key file, too, elsewhere. The volumes' data is no part of it. The control plane records the time: " +
			"if the last backup is old, `doctor` says so.",
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				written, err := backup(ctx, pb.NewMaintenanceServiceClient(connection), names[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "%d bytes in %s\n", written, names[0])
				return err
			})
		},
	}
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
