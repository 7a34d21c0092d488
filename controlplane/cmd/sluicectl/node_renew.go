package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func nodeRenew(g *globals) *cobra.Command {
	work := &node.Renew{System: node.ThisServer(), Now: time.Now}
	command := &cobra.Command{
		Use: "renew", Short: "Renew the certificates of this server that end soon", Args: cobra.NoArgs,
		Long: "Renew the certificates of this server of which two thirds of the time are over: those of its gateways, of its control plane, and of its\n" +
			"administrator. The control plane signs them; their private keys stay. The programs read the new files by themselves. Run it as root.\n" +
			"sluice-certificates.timer does so every day on a server that `node init` or `node join` has set up.",
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), g.limit(command))
			defer cancel()
			work.Sign = func(ctx context.Context, access node.Access, request string) (certificate string, err error) {
				cluster := &nodeCluster{g: g.accessing(access), command: command}
				err = cluster.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
					signed, err := pb.NewMembershipServiceClient(connection).RenewCertificate(ctx,
						&pb.RenewCertificateRequest{CertificateRequest: request})
					certificate = signed.GetCertificate()
					return err
				})
				return certificate, err
			}
			changed, err := work.Run(ctx, command.OutOrStdout())
			if err == nil && !changed {
				_, err = fmt.Fprintln(command.OutOrStdout(), "\nnothing was changed: no certificate ends soon")
			}
			return err
		},
	}
	command.Flags().BoolVar(&work.All, "all", false, "renew also certificates that are valid for long")
	command.Flags().StringVar(&work.Certificates, "certificates", "/root/sluice-certs", "directory of the administrator's certificate")
	return command
}
