package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/certs"
)

func certsCommand() *cobra.Command {
	var directory string
	var hosts, gateways []string
	command := &cobra.Command{
		Use:   "certs",
		Short: "Make a certificate authority and certificates, for a system that has none",
		Long: "Make a certificate authority in a directory, unless it is there, and certificates signed by it: server, " +
			"admin, operator, reader, and one for each gateway named. Running it again renews the certificates.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			authority, err := certs.OpenAuthority(directory)
			if err != nil {
				return err
			}
			leaves := []certs.Leaf{
				{File: "server", CommonName: "sluice-controlplane", Role: "server", Hosts: hosts},
				{File: "admin", CommonName: "admin", Role: "admin"},
				{File: "operator", CommonName: "sluice-operator", Role: "operator"},
				{File: "reader", CommonName: "reader", Role: "read-only"},
			}
			for _, gateway := range gateways {
				leaves = append(leaves, certs.Leaf{File: "gateway-" + gateway, CommonName: gateway, Role: "gateway"})
			}
			for _, leaf := range leaves {
				if err := authority.Issue(leaf); err != nil {
					return err
				}
				_, _ = fmt.Fprintf(command.OutOrStdout(), "%s (sluice:%s)\n", filepath.Join(directory, leaf.File+".crt"), leaf.Role)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&directory, "directory", "certs", "where the files are written; keep ca.key apart")
	flags.StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1", "::1"}, "names and addresses the server is reached by")
	flags.StringSliceVar(&gateways, "gateway", nil, "gateways to make a certificate for")
	return command
}
