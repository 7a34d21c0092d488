package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// adoptPool confirms that a pool's storage was replaced.
func adoptPool(k *kind, g *globals) *cobra.Command {
	var dryRun, wait bool
	command := &cobra.Command{
		Use: "adopt NAME", Short: "Confirm that a pool's storage was replaced deliberately", Args: cobra.ExactArgs(1),
		Long: "Confirm that the storage at the pool's path, or its Ceph pool, is that of the pool, for example after a copy to another\n" +
			"disk. Without this, nothing is created or deleted there. First check that the right file system is mounted, or that the\n" +
			"right Ceph cluster answers: gateways then mark the storage as the pool's, and serve its images.",
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				found, err := k.get(ctx, connection, names[0])
				if err != nil {
					return err
				}
				pool := proto.Clone(found).(*pb.StoragePool)
				pool.Spec.Adoptions++
				response, err := pb.NewStoragePoolServiceClient(connection).UpdateStoragePool(ctx, &pb.UpdateStoragePoolRequest{
					StoragePool: pool, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.adoptions"}}, DryRun: dryRun,
				})
				if err != nil {
					return err
				}
				adopted := goal{kind: k, from: response.GetStoragePool(), missing: unadopted(pool.GetSpec().GetAdoptions())}
				return g.waited(ctx, command, connection, adopted, "is to be adopted", wait && !dryRun, dryRun)
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	addWait(command, &wait, "wait until a gateway has marked the storage")
	return command
}

// unadopted waits for a marker with this number of adoptions.
func unadopted(adoptions int32) func(proto.Message) string {
	return missingOf(func(p *pb.StoragePool) string {
		if p.GetStatus().GetMarkerAdoptions() >= adoptions {
			return ""
		}
		return fmt.Sprintf("no gateway has marked it; %d of %d replacements are marked", p.GetStatus().GetMarkerAdoptions(), adoptions)
	})
}
