package controller

import (
	"context"
	"slices"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// hide takes a volume from a node, in whichever target that has it, and waits until the gateways have done so: also where a call
// before this one took it, and did not see the end of it.
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
		if err := s.take(ctx, targets[0], volume, hosts, node); err != nil {
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

// hostsOf are the Hosts by which a target may let a node in. Where none has its initiator name, it was installed anew, and its Host
// has the new one by now. Where a resource's has it, which is refused today, a target may name that or the driver's.
func (s *Service) hostsOf(ctx context.Context, node attachment.Node) ([]*pb.Host, error) {
	host, err := s.hostOf(ctx, node)
	if err != nil || host != nil && hostKeptByResource(host, node) == "" {
		return []*pb.Host{host}, err
	}
	own, err := s.ownHost(ctx, node)
	if host == nil || err != nil {
		return []*pb.Host{own}, told(err)
	}
	return []*pb.Host{host, own}, nil
}

// take takes a volume out of a target unless another node has it, too, and the node's hosts where nothing there is for them any more.
func (s *Service) take(ctx context.Context, from *pb.Target, volume *pb.Volume, hosts []*pb.Host, node attachment.Node) error {
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
		target.Spec.Hosts = slices.DeleteFunc(target.GetSpec().GetHosts(), func(one string) bool {
			return slices.ContainsFunc(hosts, func(host *pb.Host) bool { return one == host.GetMeta().GetName() })
		})
		return nil
	})
	if absent(err) { // the whole target is gone
		return nil
	}
	return err
}

// needs says that a node has another volume of a target. It is asked of a target that has just been read, and what it says goes for
// that version only: a volume is noted as published before it becomes a LUN, so one that is a LUN is found. A node that was
// installed anew may have it by another initiator name of its Hosts.
func (s *Service) needs(ctx context.Context, target *pb.Target, but *pb.Volume, hosts []*pb.Host, node attachment.Node,
) (bool, error) {
	if leftovers.Mine(target.GetMeta()) { // one node's, or one volume's
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

// hasAnother says that a volume of a target but this one is published to a node's id, with whichever key.
func (s *Service) hasAnother(ctx context.Context, target *pb.Target, but *pb.Volume, id string) (bool, error) {
	request, noted := &pb.ListVolumesRequest{Options: &pb.ListOptions{LabelSelector: ours}}, publishedLabel(id)
	for other, err := range client.All(ctx, s.volumes.ListVolumes, request, (*pb.ListVolumesResponse).GetVolumes) {
		if err != nil {
			return false, told(err)
		}
		if other.GetMeta().GetLabels()[noted] != "" && other.GetMeta().GetName() != but.GetMeta().GetName() && has(target, other) {
			return true, nil
		}
	}
	return false, nil
}

// setFree lets the next volume that is shared have the target that was this one's. Until then calls for this one find it by its name.
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
				target.Meta.Labels[labelShares] = nobodys
			}
			return nil
		})
		if err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// candidates are the targets that may have the volume for a node, or had it.
func (s *Service) candidates(ctx context.Context, volume *pb.Volume, node attachment.Node) ([]*pb.Target, error) {
	names := nodeTargets(volume, node)
	if named := volume.GetMeta().GetLabels()[labelTarget]; named != "" {
		names = append([]string{named}, names...)
	}
	var found []*pb.Target
	for _, one := range names {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: one})
		if err != nil && !absent(err) {
			return nil, told(err)
		}
		if err == nil {
			found = append(found, got.GetTarget())
		}
	}
	shared, err := s.sharedBy(ctx, volume.GetMeta().GetName())
	return append(found, shared...), err
}
