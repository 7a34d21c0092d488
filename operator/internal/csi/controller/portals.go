package controller

import (
	"context"
	"slices"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// healths returns the health of all gateways, by name.
func (s *Service) healths(ctx context.Context) (map[string]pb.GatewayHealth, error) {
	all := map[string]pb.GatewayHealth{}
	for gateway, err := range client.All(ctx, s.gateways.ListGateways, &pb.ListGatewaysRequest{}, (*pb.ListGatewaysResponse).GetGateways) {
		if err != nil {
			return nil, err
		}
		all[gateway.GetMeta().GetName()] = gateway.GetStatus().GetHealth()
	}
	return all, nil
}

// paths returns a target, and the health of its gateways.
func (s *Service) paths(ctx context.Context, target string) (*pb.Target, map[string]pb.GatewayHealth, error) {
	got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: target})
	if err != nil {
		return nil, nil, err
	}
	healths, err := s.healths(ctx)
	return got.GetTarget(), healths, err
}

// reached waits until the volume has an owner and the ready gateways show it. It returns their portals.
func (s *Service) reached(ctx context.Context, target *pb.Target, volume *pb.Volume) (a attachment.Attachment, err error) {
	name := volume.GetMeta().GetName()
	err = wait(ctx, func(ctx context.Context) (string, error) {
		now, healths, err := s.paths(ctx, target.GetMeta().GetName())
		if err != nil {
			return "", err
		}
		portals, missing := live(now, healths)
		if missing != "" {
			return missing, nil
		}
		got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
		if err != nil {
			return "", err
		}
		if state := got.GetVolume().GetStatus().GetOwnership(); state != pb.OwnershipState_OWNERSHIP_STATE_OWNED &&
			state != pb.OwnershipState_OWNERSHIP_STATE_MOVING {
			return "volume " + name + ": " + problem(got.GetVolume().GetStatus().GetConditions()), nil
		}
		a = attachment.Attachment{IQN: now.GetSpec().GetIqn(), LUN: -1, NAA: got.GetVolume().GetStatus().GetNaa(), Portals: portals}
		for _, lun := range now.GetSpec().GetLuns() {
			if lun.GetVolume() == name {
				a.LUN = lun.GetId()
			}
		}
		if a.LUN < 0 {
			return "", precondition("volume %s was taken from target %s while it was being published", name, now.GetMeta().GetName())
		}
		return "", nil
	})
	return a, err
}

// live returns the portals of ready gateways that show the newest state of the target, or what is missing.
func live(target *pb.Target, healths map[string]pb.GatewayHealth) (portals []string, missing string) {
	for _, path := range target.GetStatus().GetPaths() {
		if healths[path.GetGateway()] != pb.GatewayHealth_GATEWAY_HEALTH_READY {
			continue
		}
		if !path.GetApplied() {
			return nil, "gateway " + path.GetGateway() + " has not applied target " + target.GetMeta().GetName() + " yet"
		}
		for _, port := range path.GetPorts() {
			if address := port.GetAddress(); address != "" && !slices.Contains(portals, address) {
				portals = append(portals, address)
			}
		}
	}
	if len(portals) == 0 {
		return nil, "no gateway that is ready exports target " + target.GetMeta().GetName() + ": " +
			problem(target.GetStatus().GetConditions())
	}
	return portals, ""
}

// settled waits until no gateway serves an older state of a target: dead ones are fenced, and ones that never connected serve
// nothing.
func (s *Service) settled(ctx context.Context, target string) error {
	return wait(ctx, func(ctx context.Context) (string, error) {
		now, healths, err := s.paths(ctx, target)
		if absent(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, path := range now.GetStatus().GetPaths() {
			health := healths[path.GetGateway()]
			over := health == pb.GatewayHealth_GATEWAY_HEALTH_DEAD || health == pb.GatewayHealth_GATEWAY_HEALTH_NEW ||
				health == pb.GatewayHealth_GATEWAY_HEALTH_UNSPECIFIED
			if !path.GetApplied() && !over {
				return "gateway " + path.GetGateway() + " may still show what target " + target + " showed", nil
			}
		}
		return "", nil
	})
}
