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
		Long: `Print a new key for --key-file, which encrypts secrets in the store. A key is one line of the file.

To replace a key:
1. Append the new line to the file, and restart all replicas. A single replica does not need this step.
2. Move the new line to the front, and restart all replicas. From now on they encrypt secrets with it, and within half a minute also the
   keys of gateways.
3. Write all objects with secrets once: "sluicectl host list -o yaml | sluicectl apply -f -", and the same with "pool".
4. Remove the old line, and restart the replicas, one first. If anything is still encrypted with the old key, that replica does not
   start, and names it.

A backup needs the keys of its time.`,
		Example: "  sluice-controlplane key >>/var/lib/sluice-controlplane/secrets.key",
		Args:    cobra.NoArgs,
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
