// Package leftovers knows which objects of the control plane the CSI driver made, and deletes those that nothing uses. The driver keeps
// empty targets for the next volume, and these must not delay the deletion of a gateway pool. The operator calls this package: it
// observes the deletion, and it still runs when the driver was removed from the cluster.
package leftovers

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// LabelMadeBy, with MadeBy, is on all objects that the driver makes.
const (
	LabelMadeBy = "app.kubernetes.io/managed-by"
	MadeBy      = attachment.Driver
)

// Mine says that the driver made an object.
func Mine(meta *pb.ObjectMeta) bool { return meta.GetLabels()[LabelMadeBy] == MadeBy }

// Idle says that a target is the driver's and has no volume.
func Idle(target *pb.Target) bool {
	return Mine(target.GetMeta()) && len(target.GetSpec().GetLuns()) == 0
}

// Release deletes a target, unless it has changed since it was read or is not idle: one that was given a volume meanwhile stays.
// Whoever wanted to give it one afterwards is told that it is being deleted.
func Release(ctx context.Context, targets pb.TargetServiceClient, target *pb.Target) error {
	if !Idle(target) || target.GetMeta().GetDeleteTime() != nil {
		return nil
	}
	_, err := targets.DeleteTarget(ctx, &pb.DeleteTargetRequest{Name: target.GetMeta().GetName(), Options: &pb.DeleteOptions{
		Uid: target.GetMeta().GetUid(), ResourceVersion: target.GetMeta().GetResourceVersion()}})
	return unless(err, codes.NotFound, codes.Aborted)
}

// ReleaseHost deletes a Host of the driver's that no target names: it would only let somebody log in who does not belong there. The
// control plane refuses where one does, so one that is named at the same time stays.
func ReleaseHost(ctx context.Context, hosts pb.HostServiceClient, host *pb.Host) error {
	if !Mine(host.GetMeta()) {
		return nil
	}
	_, err := hosts.DeleteHost(ctx, &pb.DeleteHostRequest{Name: host.GetMeta().GetName(),
		Options: &pb.DeleteOptions{Uid: host.GetMeta().GetUid()}})
	return unless(err, codes.NotFound, codes.Aborted, codes.FailedPrecondition)
}

// ReleaseHosts does so with all Hosts of the driver's.
func ReleaseHosts(ctx context.Context, hosts pb.HostServiceClient) error {
	request := &pb.ListHostsRequest{Options: &pb.ListOptions{LabelSelector: map[string]string{LabelMadeBy: MadeBy}}}
	for host, err := range client.All(ctx, hosts.ListHosts, request, (*pb.ListHostsResponse).GetHosts) {
		if err != nil {
			return err
		}
		if err := ReleaseHost(ctx, hosts, host); err != nil {
			return err
		}
	}
	return nil
}

func unless(err error, expected ...codes.Code) error {
	if slices.Contains(expected, status.Code(err)) {
		return nil
	}
	return err
}
