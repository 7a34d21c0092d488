// Package kept knows which objects of the control plane the CSI driver made, and lets go of those that it keeps without a use: its
// targets wait, empty, for the next volume, and that must not hold a gateway pool that is being deleted. The operator calls it: it
// knows of the deletion, and is there when the driver has been taken out of the cluster.
package kept

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
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
	options := &pb.ListOptions{LabelSelector: map[string]string{LabelMadeBy: MadeBy}}
	for {
		page, err := hosts.ListHosts(ctx, &pb.ListHostsRequest{Options: options})
		if err != nil {
			return err
		}
		for _, host := range page.GetHosts() {
			if err := ReleaseHost(ctx, hosts, host); err != nil {
				return err
			}
		}
		if options.PageToken = page.GetNextPageToken(); options.PageToken == "" {
			return nil
		}
	}
}

func unless(err error, expected ...codes.Code) error {
	if slices.Contains(expected, status.Code(err)) {
		return nil
	}
	return err
}
