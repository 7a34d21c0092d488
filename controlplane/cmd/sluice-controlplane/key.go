package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/store"
)

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print a new key for --key-file; put it in front of the ones that are there",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), store.GenerateKey(keyID()))
			return err
		},
	}
}

func keyID() string { return time.Now().UTC().Format("20060102T150405Z") }

// makeKeyFile makes a file with one key; fs.ErrExist where it is there already.
func makeKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(store.GenerateKey(keyID())); err != nil {
		_ = file.Close()
		return err
	}
	// A secret that was stored is worth nothing without its key.
	if err := file.Sync(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
