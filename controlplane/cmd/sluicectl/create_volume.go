package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"k8s.io/apimachinery/pkg/api/resource"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// readSize reads a quantity of bytes in the notation of Kubernetes.
func readSize(flag, text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, usagef("%s %q: a size as in 10Gi, 500Mi or 1T", flag, text)
	}
	return quantity.Value(), nil
}

func createVolume(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var capacity, fromSnapshot, fromVolume, fromImage, bytesPerSecond, bytesBurst string
	var writeCache, retain, trash bool
	spec := &pb.VolumeSpec{Qos: &pb.Qos{}}
	flags := command.Flags()
	flags.StringVar(&spec.Pool, "pool", "", "storage pool of the volume")
	flags.StringVar(&capacity, "size", "", "capacity, as 10Gi")
	flags.Int32Var(&spec.BlockSize, "block-size", 512, "logical block size, 512 or 4096")
	flags.BoolVar(&writeCache, "write-cache", false, "report a volatile write cache: hosts must flush data that has to survive a power loss")
	flags.BoolVar(&retain, "retain", false, "keep the data when the volume is deleted")
	flags.BoolVar(&trash, "trash", false, "rbd: move the data to the pool's trash when the volume is deleted, for seven days")
	flags.StringVar(&fromSnapshot, "from-snapshot", "", "begin with a snapshot's content")
	flags.StringVar(&fromVolume, "from-volume", "", "begin with a copy of a volume")
	flags.StringVar(&fromImage, "from-image", "", "rbd: adopt an image that is not in use, with its content; it is renamed")
	flags.Int64Var(&spec.Qos.Iops, "iops", 0, "commands per second; 0: unlimited")
	flags.Int64Var(&spec.Qos.IopsBurst, "iops-burst", 0, "commands that a burst may have beyond the rate; 0: one second's worth")
	flags.StringVar(&bytesPerSecond, "bytes-per-second", "0", "payload bytes per second, as 100Mi; 0: unlimited")
	flags.StringVar(&bytesBurst, "bytes-burst", "0", "bytes that a burst may have beyond the rate, as 1Gi; 0: one second's worth")
	required(command, "pool", "size")
	command.MarkFlagsMutuallyExclusive("from-snapshot", "from-volume", "from-image")
	command.MarkFlagsMutuallyExclusive("retain", "trash")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		for _, bytes := range []struct {
			flag, text string
			to         *int64
		}{{"--size", capacity, &spec.SizeBytes}, {"--bytes-per-second", bytesPerSecond, &spec.Qos.BytesPerSecond},
			{"--bytes-burst", bytesBurst, &spec.Qos.BytesBurst}} {
			if bytes.text == "" {
				continue
			}
			var err error
			if *bytes.to, err = readSize(bytes.flag, bytes.text); err != nil {
				return nil, err
			}
		}
		spec.WriteCache = pb.WriteCache_WRITE_CACHE_DISABLED
		if writeCache {
			spec.WriteCache = pb.WriteCache_WRITE_CACHE_ENABLED
		}
		spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_DELETE
		switch {
		case retain:
			spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
		case trash:
			spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_TRASH
		}
		switch {
		case fromSnapshot != "":
			spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: fromSnapshot}}
		case fromVolume != "":
			spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: fromVolume}}
		case fromImage != "":
			spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: fromImage}}
		}
		return &pb.Volume{Meta: meta, Spec: spec}, nil
	}
}

// required marks flags, which have just been added, as required.
func required(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

func resizeVolume(k *kind, g *globals) *cobra.Command {
	var capacity string
	var dryRun, wait bool
	command := &cobra.Command{
		Use: "resize NAME", Short: "Grow a volume, or cancel a growth that is not done; hosts see the size after a rescan", Args: cobra.ExactArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			bytes, err := readSize("--size", capacity)
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				response, err := pb.NewVolumeServiceClient(connection).UpdateVolume(ctx, &pb.UpdateVolumeRequest{
					Volume: &pb.Volume{
						Meta: &pb.ObjectMeta{Name: names[0]}, Spec: &pb.VolumeSpec{Pool: "kept", SizeBytes: bytes},
					},
					UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.size_bytes"}}, DryRun: dryRun,
				})
				if err != nil {
					return err
				}
				grown := goal{kind: k, from: response.GetVolume(), missing: ungrown(response.GetVolume().GetSpec().GetSizeBytes()),
					replaced: resizedAgain}
				return g.waited(ctx, command, connection, grown, grows(bytes, wait), wait && !dryRun, dryRun)
			})
		},
	}
	command.Flags().StringVar(&capacity, "size", "", "new capacity, as 20Gi")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	addWait(command, &wait, "wait until hosts can see the new capacity")
	required(command, "size")
	return command
}

func grows(bytes int64, waited bool) string {
	if waited {
		return "has grown to " + size(bytes)
	}
	return "grows to " + size(bytes)
}

func moveVolume(k *kind, g *globals) *cobra.Command {
	var to string
	var dryRun, wait bool
	command := &cobra.Command{
		Use: "move NAME", Short: "Move a volume to another gateway; hosts see no error", Args: cobra.ExactArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if err := canDryRun(ctx, connection, &pb.MoveVolumeRequest{}, dryRun); err != nil {
					return err
				}
				number, err := gatewayNumber(ctx, connection, to)
				if err != nil {
					return err
				}
				response, err := pb.NewVolumeServiceClient(connection).MoveVolume(ctx,
					&pb.MoveVolumeRequest{Name: names[0], Gateway: to, DryRun: dryRun})
				if err != nil {
					return err
				}
				what := "is to move"
				if wait && !dryRun {
					what = "has moved"
				}
				moved := goal{kind: k, from: response.GetVolume(),
					missing: unmoved(number, response.GetVolume().GetStatus()), refused: moveRefused, replaced: movedAgain}
				return g.waited(ctx, command, connection, moved, what, wait && !dryRun, dryRun)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	command.Flags().StringVar(&to, "to", "", "gateway to own it; empty: whichever suits best")
	addWait(command, &wait, "wait until the other gateway owns it; exit code 5 if the move is abandoned")
	return command
}

// gatewayNumber returns the number of a gateway; 0 for an empty name.
func gatewayNumber(ctx context.Context, connection *grpc.ClientConn, name string) (uint32, error) {
	if name == "" {
		return 0, nil
	}
	got, err := pb.NewGatewayServiceClient(connection).GetGateway(ctx, &pb.GetGatewayRequest{Name: name})
	return got.GetGateway().GetStatus().GetNumber(), err
}
