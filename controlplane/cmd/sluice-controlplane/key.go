package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/keyring"
)

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print a new key for --key-file",
		Long: "Print a new key for --key-file, which encrypts secrets in the store: one line. To put it in the place of an old one\n\n" +
			"1. add its line behind the others, and restart all replicas (one replica alone needs no such step);\n" +
			"2. move it to the front, and restart all replicas: secrets are encrypted with it from then on, and those that gateways prove " +
			"themselves to each other with, within half a minute;\n" +
			"3. write what holds secrets once: `sluicectl host list -o yaml | sluicectl apply -f -`, and the same with `pool`;\n" +
			"4. take the old line out, and restart the replicas, one first: while anything is encrypted with the old key, it does not start, " +
			"and names what that is. A backup needs the keys of its time.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), keyring.GenerateKey(keyID()))
			return err
		},
	}
}

func keyID() string { return time.Now().UTC().Format("20060102T150405Z") }

// makeKeyFile creates a file with one key. Errors: fs.ErrExist if the file exists.
func makeKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(keyring.GenerateKey(keyID())); err != nil {
		_ = file.Close()
		return err
	}
	// The key must be durable before any secret is stored, because secrets cannot be decrypted without it.
	if err := file.Sync(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
