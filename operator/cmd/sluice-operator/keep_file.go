package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// checkInterval is the interval at which a maintained file is compared: a ConfigMap may change, and a file on a node may be
// removed.
const checkInterval = 30 * time.Second

func keepFileCommand() *cobra.Command {
	var from, to string
	command := &cobra.Command{
		Use: "keep-file", Short: "Keep a copy of a file as it is, until the process is ended: a seccomp profile on a node",
		Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return errors.New("--from and --to are missing: which file, and where its copy is")
			}
			return keepFile(command.Context(), from, to)
		},
	}
	command.Flags().StringVar(&from, "from", "", "the file")
	command.Flags().StringVar(&to, "to", "", "its copy")
	return command
}

func keepFile(ctx context.Context, from, to string) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		if err := copyFile(from, to); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// copyFile writes the copy if it differs, under another name, and renames it, so that no reader sees a part of it.
func copyFile(from, to string) error {
	wanted, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	have, err := os.ReadFile(to)
	if err == nil && bytes.Equal(wanted, have) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", wanted, 0o644); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return os.Rename(to+".new", to)
}
