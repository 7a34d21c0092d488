package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// How many objects are asked for at a time. For each page of sessions the control plane reads all of them: the fewer, the better.
const (
	pageSize    = 500
	sessionPage = 1000
)

// askAgain is how often something that is waited for is asked for.
const askAgain = time.Second

// Sessions are all that gateways report: hosts that are logged in.
func Sessions(ctx context.Context, service pb.SessionServiceClient) ([]*pb.Session, error) {
	var found []*pb.Session
	options := &pb.ListOptions{PageSize: sessionPage}
	for {
		page, err := service.ListSessions(ctx, &pb.ListSessionsRequest{Options: options})
		if err != nil {
			return nil, err
		}
		found = append(found, page.GetSessions()...)
		if page.GetNextPageToken() == "" {
			return found, nil
		}
		options.PageToken = page.GetNextPageToken()
	}
}

// LiveSessions describes, one per line, who is logged in.
func LiveSessions(ctx context.Context, connection grpc.ClientConnInterface) ([]string, error) {
	all, err := Sessions(ctx, pb.NewSessionServiceClient(connection))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, session := range all {
		s := session.GetStatus()
		found = append(found, fmt.Sprintf("%s (host %s) on target %s at gateway %s", s.GetInitiator(), s.GetHost(), s.GetTarget(),
			s.GetGateway()))
	}
	return found, nil
}

// Portal is an address at which a target is served.
type Portal struct {
	// Address is host:port as hosts are told, Target the target's iSCSI name.
	Address, Target string
}

// TargetPortals waits until a target is ready and as many gateways serve it as it asks for, and returns all its portals. When the
// context ends before, the error says what was missing last.
func TargetPortals(ctx context.Context, connection grpc.ClientConnInterface, name string) ([]Portal, error) {
	service := pb.NewTargetServiceClient(connection)
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		missing := ""
		switch response, err := service.GetTarget(ctx, &pb.GetTargetRequest{Name: name}); {
		case err != nil:
			missing = err.Error()
		default:
			if missing = unready(response.GetTarget()); missing == "" {
				return portalsOf(response.GetTarget()), nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("target %s: time is up: %s", name, missing)
		case <-ticker.C:
		}
	}
}

// unready says what keeps hosts from a target; empty: nothing.
func unready(target *pb.Target) string {
	conditions := target.GetStatus().GetConditions()
	ready := slices.IndexFunc(conditions, func(c *pb.Condition) bool { return c.GetType() == "Ready" })
	if ready < 0 {
		return "the control plane has not looked at it yet"
	}
	if c := conditions[ready]; c.GetStatus() != pb.ConditionStatus_CONDITION_STATUS_TRUE {
		return c.GetReason() + ": " + c.GetMessage()
	}
	applied := 0
	for _, path := range target.GetStatus().GetPaths() {
		if path.GetApplied() {
			applied++
		}
	}
	if wanted := int(target.GetSpec().GetPaths()); applied < wanted {
		return fmt.Sprintf("%d gateways serve it of %d", applied, wanted)
	}
	return ""
}

func portalsOf(target *pb.Target) []Portal {
	var found []Portal
	for _, path := range target.GetStatus().GetPaths() {
		for _, port := range path.GetPorts() {
			found = append(found, Portal{Address: port.GetAddress(), Target: target.GetSpec().GetIqn()})
		}
	}
	return found
}

// ExportedBy are the targets that a pool's gateways export, also those that no resource stands for.
func ExportedBy(ctx context.Context, targets pb.TargetServiceClient, pool string) ([]*pb.Target, error) {
	var found []*pb.Target
	options := &pb.ListOptions{PageSize: pageSize}
	for {
		page, err := targets.ListTargets(ctx, &pb.ListTargetsRequest{Options: options})
		if err != nil {
			return nil, err
		}
		for _, t := range page.GetTargets() {
			if t.GetSpec().GetGatewayPool() == pool {
				found = append(found, t)
			}
		}
		if page.GetNextPageToken() == "" {
			return found, nil
		}
		options.PageToken = page.GetNextPageToken()
	}
}
