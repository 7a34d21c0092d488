package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// pollInterval is the time between two reads of a target that is not ready yet.
const pollInterval = time.Second

// portal is an address at which a target is served.
type portal struct {
	// address is host:port as hosts get it, target the target's iSCSI name.
	address, target string
}

// targetPortals waits until a target is ready and the wanted number of gateways serve it, and returns all its portals. If the
// context ends before, the error states what was missing last.
func targetPortals(ctx context.Context, connection grpc.ClientConnInterface, name string) ([]portal, error) {
	service := pb.NewTargetServiceClient(connection)
	ticker := time.NewTicker(pollInterval)
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

// unready returns why hosts cannot use a target yet; empty: they can.
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

func portalsOf(target *pb.Target) []portal {
	var found []portal
	for _, path := range target.GetStatus().GetPaths() {
		for _, port := range path.GetPorts() {
			found = append(found, portal{address: port.GetAddress(), target: target.GetSpec().GetIqn()})
		}
	}
	return found
}
