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

// readSize reads a quantity of bytes as Kubernetes writes them.
func readSize(flag, text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, usagef("%s %q: a size as in 10Gi, 500Mi or 1T", flag, text)
	}
	return quantity.Value(), nil
}

func createVolume(command *cobra.Command) func(*pb.ObjectMeta) (proto.Message, error) {
	var capacity, fromSnapshot, fromVolume string
	var writeCache, retain bool
	spec := &pb.VolumeSpec{Qos: &pb.Qos{}}
	flags := command.Flags()
	flags.StringVar(&spec.Pool, "pool", "", "storage pool it lives in")
	flags.StringVar(&capacity, "size", "", "capacity, as 10Gi")
	flags.Int32Var(&spec.BlockSize, "block-size", 512, "logical block size, 512 or 4096")
	flags.BoolVar(&writeCache, "write-cache", false, "report a volatile write cache: hosts flush what has to be safe")
	flags.BoolVar(&retain, "retain", false, "keep the data when the volume is deleted")
	flags.StringVar(&fromSnapshot, "from-snapshot", "", "begin with a snapshot's content")
	flags.StringVar(&fromVolume, "from-volume", "", "begin with a copy of a volume")
	flags.Int64Var(&spec.Qos.Iops, "iops", 0, "commands per second; 0: unlimited")
	flags.Int64Var(&spec.Qos.BytesPerSecond, "bytes-per-second", 0, "payload bytes per second; 0: unlimited")
	required(command, "pool", "size")
	command.MarkFlagsMutuallyExclusive("from-snapshot", "from-volume")
	return func(meta *pb.ObjectMeta) (proto.Message, error) {
		bytes, err := readSize("--size", capacity)
		if err != nil {
			return nil, err
		}
		spec.SizeBytes = bytes
		if writeCache {
			spec.WriteCache = pb.WriteCache_WRITE_CACHE_ENABLED
		}
		if retain {
			spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
		}
		if fromSnapshot != "" {
			spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: fromSnapshot}}
		} else if fromVolume != "" {
			spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: fromVolume}}
		}
		return &pb.Volume{Meta: meta, Spec: spec}, nil
	}
}

// required marks flags, which were added just before.
func required(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

func resizeVolume(k *kind, g *globals) *cobra.Command {
	var capacity string
	var dryRun bool
	command := &cobra.Command{
		Use: "resize NAME", Short: "Grow a volume; hosts see it by a rescan", Args: cobra.ExactArgs(1),
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
				return g.done(command, k, response.GetVolume(), "grows to "+size(bytes), dryRun)
			})
		},
	}
	command.Flags().StringVar(&capacity, "size", "", "new capacity, as 20Gi")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "have it validated; change nothing")
	required(command, "size")
	return command
}

func moveVolume(k *kind, g *globals) *cobra.Command {
	var to string
	command := &cobra.Command{
		Use: "move NAME", Short: "Move a volume to another gateway; hosts see no error", Args: cobra.ExactArgs(1),
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				response, err := pb.NewVolumeServiceClient(connection).MoveVolume(ctx,
					&pb.MoveVolumeRequest{Name: names[0], Gateway: to})
				if err != nil {
					return err
				}
				return g.done(command, k, response.GetVolume(), "is to move", false)
			})
		},
	}
	command.Flags().StringVar(&to, "to", "", "gateway to own it; empty: whichever suits best")
	return command
}
