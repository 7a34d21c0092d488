package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func createTarget(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var luns []string
	spec := &pb.TargetSpec{}
	flags := command.Flags()
	flags.StringVar(&spec.Iqn, "iqn", "", "iSCSI name; empty: made of the target's name")
	flags.StringVar(&spec.GatewayPool, "gateway-pool", "default", "gateways that export it")
	flags.Int32Var(&spec.Paths, "paths", 2, "gateways in the path set")
	flags.StringArrayVar(&luns, "lun", nil, "LUN as NUMBER=VOLUME or NUMBER=VOLUME,ro; repeat for more")
	flags.StringSliceVar(&spec.Hosts, "host", nil, "hosts that may log in, by name")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		for _, text := range luns {
			lun, err := readLun(text)
			if err != nil {
				return nil, err
			}
			spec.Luns = append(spec.Luns, lun)
		}
		return &pb.Target{Meta: meta, Spec: spec}, nil
	}
}

func readLun(text string) (*pb.TargetLun, error) {
	id, volume, whole := strings.Cut(text, "=")
	number, err := strconv.ParseInt(id, 10, 32)
	if !whole || err != nil || volume == "" {
		return nil, usagef("LUN %q: write NUMBER=VOLUME, as in 0=orders, or NUMBER=VOLUME,ro", text)
	}
	volume, readOnly := strings.CutSuffix(volume, ",ro")
	return &pb.TargetLun{Id: int32(number), Volume: volume, ReadOnly: readOnly}, nil
}

func createHost(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	spec := &pb.HostSpec{}
	flags := command.Flags()
	flags.StringSliceVar(&spec.Initiators, "initiator", nil, "iSCSI names of the host (/etc/iscsi/initiatorname.iscsi)")
	own, mutual := addChapFlags(command)
	flags.BoolVar(&spec.AllowUnauthenticated, "allow-unauthenticated", false, "permit logins without CHAP, by the initiator's name alone")
	flags.StringSliceVar(&spec.Switches, "switch", nil, "switch to which it is connected, as FABRIC/SWITCH, one for each fabric")
	flags.Int32Var(&spec.MaxSessions, "max-sessions", 64, "sessions at a time, over all gateways")
	required(command, "initiator")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		var err error
		if spec.Chap, err = own.credentials(command); err != nil {
			return nil, err
		}
		if spec.MutualChap, err = mutual.credentials(command); err != nil {
			return nil, err
		}
		return &pb.Host{Meta: meta, Spec: spec}, nil
	}
}

func rollBackSnapshot(k *kind, g *globals) *cobra.Command {
	var dryRun, wait bool
	command := &cobra.Command{
		Use: "rollback NAME", Short: "Roll a volume back to a snapshot; no target may map the volume", Args: cobra.ExactArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				response, err := pb.NewSnapshotServiceClient(connection).RollBackSnapshot(ctx,
					&pb.RollBackSnapshotRequest{Name: names[0], DryRun: dryRun})
				if err != nil {
					return err
				}
				volume, err := pb.NewVolumeServiceClient(connection).GetVolume(ctx,
					&pb.GetVolumeRequest{Name: response.GetSnapshot().GetSpec().GetVolume()})
				if err != nil {
					return err
				}
				what := "is to be rolled back to " + names[0]
				if wait {
					what = "has been rolled back to " + names[0]
				}
				back := goal{kind: volumeKind, from: volume.GetVolume(), missing: unrolled, refused: rollBackFailed}
				return g.waited(ctx, command, connection, back, what, wait && !dryRun, dryRun)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	addWait(command, &wait, "wait until the volume is what it was")
	return command
}

func createSnapshot(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var retain bool
	spec := &pb.SnapshotSpec{}
	command.Flags().StringVar(&spec.Volume, "volume", "", "volume of which it is made")
	command.Flags().BoolVar(&retain, "retain", false, "keep the data when the snapshot is deleted")
	required(command, "volume")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_DELETE
		if retain {
			spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
		}
		return &pb.Snapshot{Meta: meta, Spec: spec}, nil
	}
}
