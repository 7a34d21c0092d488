// Package leftovers identifies the objects of the control plane that the CSI driver made, and deletes the unused ones. The driver
// keeps empty targets for later volumes, and these must not delay the deletion of a gateway pool. The operator calls this
// package, because it observes that deletion and still runs when the driver was removed from the cluster.
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

// LabelMadeBy, with the value MadeBy, is on all objects that the driver makes.
const (
	LabelMadeBy = "app.kubernetes.io/managed-by"
	MadeBy      = attachment.Driver
)

// Mine reports whether the driver made an object.
func Mine(meta *pb.ObjectMeta) bool { return meta.GetLabels()[LabelMadeBy] == MadeBy }

// Idle reports whether a target is the driver's and has no volume.
func Idle(target *pb.Target) bool {
	return Mine(target.GetMeta()) && len(target.GetSpec().GetLuns()) == 0
}

// Release deletes a target, unless it has changed since it was read or is not idle: a target that got a volume meanwhile stays. A
// later attempt to give it a volume fails because it is being deleted.
func Release(ctx context.Context, targets pb.TargetServiceClient, target *pb.Target) error {
	if !Idle(target) || target.GetMeta().GetDeleteTime() != nil {
		return nil
	}
	_, err := targets.DeleteTarget(ctx, &pb.DeleteTargetRequest{Name: target.GetMeta().GetName(), Options: &pb.DeleteOptions{
		Uid: target.GetMeta().GetUid(), ResourceVersion: target.GetMeta().GetResourceVersion()}})
	return unless(err, codes.NotFound, codes.Aborted)
}

// ReleaseHost deletes a Host of the driver that no target names, because it would admit a host that needs no access. The control
// plane refuses if a target names it, so a Host that is named at the same time stays.
func ReleaseHost(ctx context.Context, hosts pb.HostServiceClient, host *pb.Host) error {
	if !Mine(host.GetMeta()) {
		return nil
	}
	_, err := hosts.DeleteHost(ctx, &pb.DeleteHostRequest{Name: host.GetMeta().GetName(),
		Options: &pb.DeleteOptions{Uid: host.GetMeta().GetUid()}})
	return unless(err, codes.NotFound, codes.Aborted, codes.FailedPrecondition)
}

// ReleaseHosts calls ReleaseHost for all Hosts of the driver.
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
