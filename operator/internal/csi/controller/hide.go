package controller

import (
	"context"
	"slices"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// hide withdraws a volume from a node, in any target that has it, and waits until the gateways have applied that. This includes a
// withdrawal that an earlier call began and did not complete.
func (s *Service) hide(ctx context.Context, volume *pb.Volume, node attachment.Node) error {
	targets, err := s.candidates(ctx, volume, node)
	if err != nil {
		return err
	}
	hosts, err := s.hostsOf(ctx, node)
	if err != nil {
		return err
	}
	shows := func(target *pb.Target) bool {
		return target.GetMeta().GetLabels()[labelShares] == volume.GetMeta().GetName() || has(target, volume)
	}
	if at := slices.IndexFunc(targets, shows); at >= 0 {
		targets = targets[at : at+1]
		if err := s.removeFromTarget(ctx, targets[0], volume, hosts, node); err != nil {
			return err
		}
	}
	for _, target := range targets {
		if err := s.settled(ctx, target.GetMeta().GetName()); err != nil {
			return err
		}
	}
	return s.setFree(ctx, targets, volume)
}

// hostsOf returns the Hosts by which a target may admit a node. If none has its initiator name, the node was reinstalled, and its
// Host has the new name by now. If a Host of a resource has it, which is refused today, a target may name that Host or the
// driver's.
func (s *Service) hostsOf(ctx context.Context, node attachment.Node) ([]*pb.Host, error) {
	host, err := s.hostOf(ctx, node)
	if err != nil || host != nil && hostKeptByResource(host, node) == "" {
		return []*pb.Host{host}, err
	}
	own, err := s.ownHost(ctx, node)
	if host == nil || err != nil {
		return []*pb.Host{own}, clientError(err)
	}
	return []*pb.Host{host, own}, nil
}

// removeFromTarget removes a volume from a target unless another node also has it, and the node's Hosts if they have no other
// volume there.
func (s *Service) removeFromTarget(ctx context.Context, from *pb.Target, volume *pb.Volume, hosts []*pb.Host, node attachment.Node) error {
	name := volume.GetMeta().GetName()
	others := len(publishedTo(volume.GetMeta().GetLabels())) > 1
	_, err := s.change(ctx, from.GetMeta().GetName(), func(target *pb.Target, _ int) error {
		if !others {
			target.Spec.Luns = slices.DeleteFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool { return lun.GetVolume() == name })
		}
		needed, err := s.needs(ctx, target, volume, hosts, node)
		if err != nil || needed {
			return err
		}
		target.Spec.Hosts = slices.DeleteFunc(target.GetSpec().GetHosts(), func(name string) bool {
			return slices.ContainsFunc(hosts, func(host *pb.Host) bool { return name == host.GetMeta().GetName() })
		})
		return nil
	})
	if absent(err) { // the whole target was deleted
		return nil
	}
	return err
}

// needs reports whether a node has another volume of a target. The target has just been read, and the result is valid for that
// version only: a volume is recorded as published before it becomes a LUN, so each LUN is found. A reinstalled node may have the
// volume under another initiator name of its Hosts.
func (s *Service) needs(ctx context.Context, target *pb.Target, but *pb.Volume, hosts []*pb.Host, node attachment.Node,
) (bool, error) {
	if leftovers.Mine(target.GetMeta()) { // a target of one node, or of one volume
		return slices.ContainsFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool {
			return lun.GetVolume() != but.GetMeta().GetName()
		}), nil
	}
	initiators := []string{node.Initiator}
	for _, host := range hosts {
		initiators = append(initiators, host.GetSpec().GetInitiators()...)
	}
	for _, initiator := range initiators {
		id, err := attachment.Node{Name: node.Name, Initiator: initiator}.ID()
		if err != nil { // no volume is published to such a node
			continue
		}
		if needed, err := s.hasAnother(ctx, target, but, id); err != nil || needed {
			return needed, err
		}
	}
	return false, nil
}

// hasAnother reports whether another volume of a target is published to a node, under its id with any key.
func (s *Service) hasAnother(ctx context.Context, target *pb.Target, but *pb.Volume, id string) (bool, error) {
	request, noted := &pb.ListVolumesRequest{Options: &pb.ListOptions{LabelSelector: ours}}, publishedLabel(id)
	for other, err := range client.All(ctx, s.volumes.ListVolumes, request, (*pb.ListVolumesResponse).GetVolumes) {
		if err != nil {
			return false, clientError(err)
		}
		if other.GetMeta().GetLabels()[noted] != "" && other.GetMeta().GetName() != but.GetMeta().GetName() && has(target, other) {
			return true, nil
		}
	}
	return false, nil
}

// setFree makes the target of a shared volume available to the next shared volume. Until then calls find it by the volume's name.
func (s *Service) setFree(ctx context.Context, targets []*pb.Target, volume *pb.Volume) error {
	if len(publishedTo(volume.GetMeta().GetLabels())) > 1 {
		return nil
	}
	for _, target := range targets {
		if target.GetMeta().GetLabels()[labelShares] != volume.GetMeta().GetName() {
			continue
		}
		_, err := s.change(ctx, target.GetMeta().GetName(), func(target *pb.Target, _ int) error {
			if target.GetMeta().GetDeleteTime() == nil {
				target.Meta.Labels[labelShares] = noVolume
			}
			return nil
		})
		if err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// candidates returns the targets that may have, or had, the volume for a node.
func (s *Service) candidates(ctx context.Context, volume *pb.Volume, node attachment.Node) ([]*pb.Target, error) {
	names := nodeTargets(volume, node)
	if named := volume.GetMeta().GetLabels()[labelTarget]; named != "" {
		names = append([]string{named}, names...)
	}
	var found []*pb.Target
	for _, name := range names {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil && !absent(err) {
			return nil, clientError(err)
		}
		if err == nil {
			found = append(found, got.GetTarget())
		}
	}
	shared, err := s.sharedBy(ctx, volume.GetMeta().GetName())
	return append(found, shared...), err
}
