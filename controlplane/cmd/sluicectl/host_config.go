package main

import (
	"context"
	"embed"
	"net"
	"text/template"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

//go:embed hostconfig/*.txt
var hostConfigs embed.FS

var systems = []string{"linux", "windows", "esxi", "proxmox"}

func hostConfigCommand(g *globals) *cobra.Command {
	var portal string
	command := &cobra.Command{
		Use: "host-config linux|windows|esxi|proxmox", Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: systems,
		Short:     "Print what a host needs: multipath.conf, claim rules or PowerShell, and the commands to connect",
		RunE: func(command *cobra.Command, names []string) error {
			if portal == "" {
				portal = firstPortal(command, g)
			}
			address, port, err := net.SplitHostPort(portal)
			if err != nil {
				return usagef("--portal %q is not host:port", portal)
			}
			text, err := template.ParseFS(hostConfigs, "hostconfig/"+names[0]+".txt", "hostconfig/multipath.txt")
			if err != nil {
				return err
			}
			return text.Execute(command.OutOrStdout(),
				struct{ Portal, Address, Port string }{portal, address, port})
		},
	}
	command.Flags().StringVar(&portal, "portal", "", "portal to discover by; empty: a portal of the control plane's gateways, "+
		"or the example 192.0.2.1:3260 if there is none")
	return command
}

// firstPortal asks the control plane for a portal. If it does not answer, the text contains an example.
func firstPortal(command *cobra.Command, g *globals) string {
	portal := "192.0.2.1:3260"
	_ = with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
		service := pb.NewGatewayServiceClient(connection)
		for gateway, err := range client.All(ctx, service.ListGateways, &pb.ListGatewaysRequest{}, (*pb.ListGatewaysResponse).GetGateways) {
			if err != nil {
				return err
			}
			for _, known := range gateway.GetSpec().GetPortals() {
				portal = known.GetAdvertised()
				return nil
			}
		}
		return nil
	})
	return portal
}
