package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/hostconfig"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// allLinux is the argument that stands for all Linux hosts.
const allLinux = "linux"

func hostConfigCommand(g *globals) *cobra.Command {
	var system string
	var verify, expect bool
	own, mutual := &chapFlags{name: "chap"}, &chapFlags{name: "mutual-chap"}
	command := &cobra.Command{
		Use:   "host-config HOST|linux",
		Short: "Print the script that connects a host to its targets",
		Long: "Print the script that connects a host to its targets: the initiator and multipath with the settings that the gateways rely on, and a\n" +
			"session at each portal. Run it on the host. It can run again at any time: what is configured already stays.\n\n" +
			"The control plane never shows a CHAP secret. Give it by --chap-secret-file, or the script asks for it, or reads it from\n" +
			"$SLUICE_CHAP_SECRET (for the secret of the targets: $SLUICE_MUTUAL_CHAP_SECRET).\n\n" +
			"`host-config linux` needs no control plane. It prints the settings of multipath and open-iscsi that all Linux hosts need, for images\n" +
			"of machines and for nodes of Kubernetes.",
		Args: func(command *cobra.Command, names []string) error {
			if len(names) == 1 && slices.Contains(hostconfig.Systems(), names[0]) {
				return usagef("%[1]s is an operating system: write `host-config HOST --os %[1]s`, with the name of a host", names[0])
			}
			return cobra.ExactArgs(1)(command, names)
		},
		ValidArgsFunction: kindNamed("host").completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			out := command.OutOrStdout()
			if names[0] == allLinux {
				return hostconfig.WriteLinux(out)
			}
			if !slices.Contains(hostconfig.Systems(), system) {
				return usagef("--os %q: use one of %s", system, strings.Join(hostconfig.Systems(), ", "))
			}
			secret, err := own.secret(command)
			if err != nil {
				return err
			}
			mutualSecret, err := mutual.secret(command)
			if err != nil {
				return err
			}
			part := hostconfig.Script
			if verify {
				part = hostconfig.Verify
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				setup, err := hostSetup(ctx, connection, names[0], secret, mutualSecret)
				if err != nil {
					return err
				}
				if expect {
					return hostconfig.WriteExpected(out, setup)
				}
				return hostconfig.Write(out, system, part, setup)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&system, "os", "debian", "operating system of the host: "+strings.Join(hostconfig.Systems(), ", "))
	flags.StringVar(&own.secretFile, "chap-secret-file", "", "file that holds the CHAP secret of the host, for the script; - for standard input")
	flags.StringVar(&mutual.secretFile, "mutual-chap-secret-file", "", "file that holds the CHAP secret of the targets, for the script")
	flags.BoolVar(&verify, "verify", false, "print commands that check what the script has configured, and change nothing")
	flags.BoolVar(&expect, "expect", false, "print what the host has in the cluster, for \"sluice-host check --expect FILE\" there")
	command.MarkFlagsMutuallyExclusive("verify", "expect")
	for _, script := range []string{"os", "chap-secret-file", "mutual-chap-secret-file"} {
		command.MarkFlagsMutuallyExclusive("expect", script)
	}
	_ = command.RegisterFlagCompletionFunc("os", cobra.FixedCompletions(hostconfig.Systems(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

// hostSetup reads what the scripts need to know of a host.
func hostSetup(ctx context.Context, connection *grpc.ClientConn, name, secret, mutualSecret string) (hostconfig.Setup, error) {
	got, err := pb.NewHostServiceClient(connection).GetHost(ctx, &pb.GetHostRequest{Name: name})
	if err != nil {
		return hostconfig.Setup{}, kindNamed("host").about(name, err)
	}
	spec := got.GetHost().GetSpec()
	setup := hostconfig.Setup{Host: name, Initiators: spec.GetInitiators()}
	if setup.CHAP, err = chapOf("chap", spec.GetChap(), secret); err != nil {
		return setup, err
	}
	if setup.Mutual, err = chapOf("mutual-chap", spec.GetMutualChap(), mutualSecret); err != nil {
		return setup, err
	}
	service := pb.NewTargetServiceClient(connection)
	for target, err := range client.All(ctx, service.ListTargets, &pb.ListTargetsRequest{}, (*pb.ListTargetsResponse).GetTargets) {
		if err != nil {
			return setup, err
		}
		if !slices.Contains(target.GetSpec().GetHosts(), name) {
			continue
		}
		luns, err := hostLUNs(ctx, connection, target)
		if err != nil {
			return setup, err
		}
		setup.Targets = append(setup.Targets, hostconfig.Target{IQN: target.GetSpec().GetIqn(), LUNs: luns, Portals: portalsFor(spec, target)})
	}
	return setup, nil
}

// hostLUNs returns the logical units of a target, with the designators of their volumes.
func hostLUNs(ctx context.Context, connection *grpc.ClientConn, target *pb.Target) ([]hostconfig.LUN, error) {
	service := pb.NewVolumeServiceClient(connection)
	var luns []hostconfig.LUN
	for _, lun := range target.GetSpec().GetLuns() {
		got, err := service.GetVolume(ctx, &pb.GetVolumeRequest{Name: lun.GetVolume()})
		if err != nil {
			return nil, volumeKind.about(lun.GetVolume(), err)
		}
		luns = append(luns, hostconfig.LUN{ID: lun.GetId(), Volume: lun.GetVolume(), NAA: got.GetVolume().GetStatus().GetNaa()})
	}
	return luns, nil
}

// chapOf returns what a host authenticates with. A secret for a host without CHAP is an error: the host would not use it.
func chapOf(flags string, have *pb.ChapCredentials, secret string) (*hostconfig.Credentials, error) {
	if have == nil && secret != "" {
		return nil, usagef("--%s-secret-file: the host has no such secret; set it first with `sluicectl host set-chap`", flags)
	}
	if have == nil {
		return nil, nil
	}
	return &hostconfig.Credentials{User: have.GetUsername(), Secret: secret}, nil
}

// portalsFor returns the portals of a target on the fabrics of a host. A host that names no switch is taken to reach all fabrics.
func portalsFor(host *pb.HostSpec, target *pb.Target) []string {
	fabrics := map[string]bool{}
	for _, place := range host.GetSwitches() {
		fabric, _, _ := strings.Cut(place, "/")
		fabrics[fabric] = true
	}
	portals := map[string]bool{}
	for _, path := range target.GetStatus().GetPaths() {
		for _, port := range path.GetPorts() {
			if len(fabrics) == 0 || fabrics[port.GetFabric()] {
				portals[port.GetAddress()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(portals))
}
