package gateway

import (
	"context"

	sluice "sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// sessionPage is the largest page: for each page of sessions the control plane reads all of them.
const sessionPage = 1000

// Sessions returns all sessions that gateways report: hosts that are logged in.
func Sessions(ctx context.Context, service pb.SessionServiceClient) ([]*pb.Session, error) {
	request := &pb.ListSessionsRequest{Options: &pb.ListOptions{PageSize: sessionPage}}
	return sluice.Collect(sluice.All(ctx, service.ListSessions, request, (*pb.ListSessionsResponse).GetSessions))
}

// ExportedBy returns the targets that a pool's gateways export, including those without a resource.
func ExportedBy(ctx context.Context, service pb.TargetServiceClient, pool string) ([]*pb.Target, error) {
	var found []*pb.Target
	for target, err := range sluice.All(ctx, service.ListTargets, &pb.ListTargetsRequest{}, (*pb.ListTargetsResponse).GetTargets) {
		if err != nil {
			return nil, err
		}
		if target.GetSpec().GetGatewayPool() == pool {
			found = append(found, target)
		}
	}
	return found, nil
}
