package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/certs"
)

func certsCommand() *cobra.Command {
	var directory string
	var hosts, removed, gateways []string
	var lifetime time.Duration
	command := &cobra.Command{
		Use:   "certs",
		Short: "Make or renew a certificate authority and certificates, for a system that has none",
		Long: `Make a certificate authority in a directory, unless it is there, and certificates that it signs: server, admin, operator, csi, reader,
and one for each gateway named. A second run renews these certificates. The server's certificate keeps its names; --remove-host removes one.`,
		Example: "  sluice-controlplane certs --directory certs --host cp1.example.com --gateway gw-1 --gateway gw-2\n" +
			"  sluice-controlplane certs --directory certs --remove-host cp1.example.com",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if lifetime <= 0 {
				return fmt.Errorf("--lifetime %v: it has to be positive", lifetime)
			}
			authority, err := certs.OpenAuthority(directory)
			if err != nil {
				return err
			}
			if !command.Flags().Changed("host") && authority.Issued("server") {
				hosts = nil // a removed name must not return as a default
			}
			leaves := []certs.Leaf{
				{File: "server", CommonName: certs.ServerName, Role: "server", Hosts: hosts, RemoveHosts: removed},
				{File: "admin", CommonName: "admin", Role: "admin"},
				{File: "operator", CommonName: "sluice-operator", Role: "operator"},
				{File: "csi", CommonName: "sluice-csi", Role: "csi"},
				{File: "reader", CommonName: "reader", Role: "read-only"},
			}
			for _, gateway := range gateways {
				if gateway == certs.ServerName {
					return fmt.Errorf("--gateway %s: servers of the control plane have this name; give the gateway another one", gateway)
				}
				leaves = append(leaves, certs.Leaf{File: "gateway-" + gateway, CommonName: gateway, Role: "gateway"})
			}
			for _, leaf := range leaves {
				leaf.Lifetime = lifetime
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
	flags.StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1", "::1"},
		"DNS names and IP addresses by which clients reach the server, added to those in the present certificate; "+
			"the default is for the first certificate")
	flags.StringSliceVar(&removed, "remove-host", nil, "names and addresses that the server's new certificate shall not have")
	flags.StringSliceVar(&gateways, "gateway", nil, "gateways to make a certificate for")
	flags.DurationVar(&lifetime, "lifetime", certs.LeafLifetime, "how long the certificates are valid, from now")
	return command
}
