package main

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func createPool(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	local, rbd, keyFile := &pb.LocalPool{}, &pb.RbdPool{}, ""
	spec := &pb.StoragePoolSpec{}
	flags := command.Flags()
	flags.StringVar(&local.Node, "node", "", "local: node that has the storage")
	flags.StringVar(&local.Directory, "directory", "", "local: directory on XFS or ext4")
	flags.StringSliceVar(&local.Devices, "device", nil, "local: block devices, used whole")
	flags.StringSliceVar(&rbd.Monitors, "monitor", nil, "rbd: monitors, as host:port")
	flags.StringVar(&rbd.User, "user", "", "rbd: Ceph user, without client.")
	flags.StringVar(&keyFile, "ceph-key-file", "", "rbd: file that holds the user's key")
	flags.StringVar(&rbd.Pool, "ceph-pool", "", "rbd: pool")
	flags.StringVar(&rbd.RadosNamespace, "rados-namespace", "", "rbd: namespace")
	flags.StringVar(&rbd.DataPool, "data-pool", "", "rbd: pool for the data of new images")
	flags.Int32Var(&spec.WarnPercent, "warn-percent", 85, "use in percent above which hosts and administrators are warned")
	flags.StringSliceVar(&spec.GatewayPools, "gateway-pool", nil,
		"rbd: gateway pools that receive the key; none: each gateway pool with a target that maps a volume of this pool")
	flags.StringSliceVar(&spec.AdoptableImages, "adoptable-image", nil,
		"rbd: images, as names or patterns with *, that Volumes in Kubernetes may adopt")
	command.MarkFlagsOneRequired("node", "monitor")
	for _, ofLocal := range []string{"node", "directory", "device"} {
		for _, ofRBD := range []string{"monitor", "user", "ceph-key-file", "ceph-pool", "rados-namespace", "data-pool",
			"gateway-pool", "adoptable-image"} {
			command.MarkFlagsMutuallyExclusive(ofLocal, ofRBD)
		}
	}
	command.MarkFlagsRequiredTogether("monitor", "ceph-key-file")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		if keyFile != "" {
			text, err := os.ReadFile(keyFile)
			if err != nil {
				return nil, usagef("--ceph-key-file: %w", err)
			}
			if rbd.Key = strings.TrimSpace(string(text)); rbd.GetKey() == "" {
				return nil, usagef("--ceph-key-file: %s holds no key", keyFile)
			}
		}
		spec.Kind = &pb.StoragePoolSpec_Local{Local: local}
		if proto.Size(rbd) > 0 {
			spec.Kind = &pb.StoragePoolSpec_Rbd{Rbd: rbd}
		}
		return &pb.StoragePool{Meta: meta, Spec: spec}, nil
	}
}

func createGateway(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var portals []string
	spec := &pb.GatewaySpec{}
	flags := command.Flags()
	flags.StringVar(&spec.GatewayPool, "pool", "default", "gateway pool it belongs to")
	flags.StringVar(&spec.Node, "node", "", "node it runs on")
	flags.StringArrayVar(&portals, "portal", nil,
		"portal as fabric=F,listen=HOST:PORT[,advertised=HOST:PORT][,switch=S]; repeat for more")
	flags.StringVar(&spec.ForwardingAddress, "forwarding-address", "", "host:port for the other gateways, on the cluster network")
	flags.Int32Var(&spec.Weight, "weight", 100, "share of the load, 1 to 1000")
	required(command, "node", "portal", "forwarding-address")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		for _, text := range portals {
			portal, err := readPortal(text)
			if err != nil {
				return nil, err
			}
			spec.Portals = append(spec.Portals, portal)
		}
		return &pb.Gateway{Meta: meta, Spec: spec}, nil
	}
}

func readPortal(text string) (*pb.Portal, error) {
	portal := &pb.Portal{}
	places := map[string]*string{
		"fabric": &portal.Fabric, "listen": &portal.Listen, "advertised": &portal.Advertised, "switch": &portal.Switch,
	}
	for _, part := range strings.Split(text, ",") {
		key, value, whole := strings.Cut(part, "=")
		if !whole || places[key] == nil {
			return nil, usagef("--portal %q: %q is none of fabric=, listen=, advertised=, switch=", text, part)
		}
		*places[key] = value
	}
	return portal, nil
}

func drainGateway(k *kind, g *globals) *cobra.Command {
	return gatewayVerb(k, g, "drain", "Move volumes and paths away from a gateway until it is undrained; hosts see no error", undrained,
		&pb.DrainGatewayRequest{},
		func(ctx context.Context, client pb.GatewayServiceClient, name string, dryRun bool) (*pb.Gateway, error) {
			response, err := client.DrainGateway(ctx, &pb.DrainGatewayRequest{Name: name, DryRun: dryRun})
			return response.GetGateway(), err
		})
}

func undrainGateway(k *kind, g *globals) *cobra.Command {
	return gatewayVerb(k, g, "undrain", "End the drain of a gateway: it gets volumes and paths again", unmadeGateway,
		&pb.UndrainGatewayRequest{},
		func(ctx context.Context, client pb.GatewayServiceClient, name string, dryRun bool) (*pb.Gateway, error) {
			response, err := client.UndrainGateway(ctx, &pb.UndrainGatewayRequest{Name: name, DryRun: dryRun})
			return response.GetGateway(), err
		})
}

func gatewayVerb(k *kind, g *globals, verb, short string, missing func(proto.Message) string,
	request proto.Message, call func(context.Context, pb.GatewayServiceClient, string, bool) (*pb.Gateway, error),
) *cobra.Command {
	var dryRun, wait bool
	command := &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if err := canDryRun(ctx, connection, request, dryRun); err != nil {
					return err
				}
				gateway, err := call(ctx, pb.NewGatewayServiceClient(connection), names[0], dryRun)
				if err != nil {
					return err
				}
				what := verb + " was asked for"
				if wait && !dryRun {
					what = verb + " is complete"
				}
				wanted := goal{kind: k, from: gateway, missing: missing, replaced: k.replaced}
				if verb == "drain" {
					wanted.steps = volumesOf(gateway.GetStatus().GetNumber())
				}
				return g.waited(ctx, command, connection, wanted, what, wait && !dryRun, dryRun)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	addWait(command, &wait, "wait until it is done")
	return command
}

// volumesOf returns the volumes that must leave a gateway before it is drained.
func volumesOf(number uint32) *steps {
	return &steps{volumeKind, func(object proto.Message) bool {
		volume, _ := object.(*pb.Volume)
		return volume.GetStatus().GetOwnerGateway() == number
	}}
}

func createGatewayPool(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	spec := &pb.GatewayPoolSpec{}
	command.Flags().StringSliceVar(&spec.Fabrics, "fabric", nil, "fabrics its gateways have portals on")
	command.Flags().Int32Var(&spec.MaxSessionsPerGateway, "max-sessions", 4096, "sessions at a time on one gateway")
	required(command, "fabric")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		return &pb.GatewayPool{Meta: meta, Spec: spec}, nil
	}
}

func createFabric(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var links []string
	spec := &pb.FabricSpec{}
	flags := command.Flags()
	flags.StringSliceVar(&spec.Subnets, "subnet", nil, "subnets in CIDR notation")
	flags.StringSliceVar(&spec.Switches, "switch", nil, "switches by name; none: one, named as the fabric")
	flags.StringSliceVar(&links, "link", nil, "links between switches, as A:B or A:B=COST")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		for _, text := range links {
			link, err := readLink(text)
			if err != nil {
				return nil, err
			}
			spec.Links = append(spec.Links, link)
		}
		return &pb.Fabric{Meta: meta, Spec: spec}, nil
	}
}

func readLink(text string) (*pb.FabricLink, error) {
	ends, cost, priced := strings.Cut(text, "=")
	a, b, whole := strings.Cut(ends, ":")
	link := &pb.FabricLink{A: a, B: b}
	if priced {
		n, err := strconv.ParseInt(cost, 10, 32)
		if err != nil {
			return nil, usagef("--link %q: the cost is a number from 1 to 1000", text)
		}
		link.Cost = int32(n)
	}
	if !whole || a == "" || b == "" {
		return nil, usagef("--link %q: write A:B or A:B=COST", text)
	}
	return link, nil
}
