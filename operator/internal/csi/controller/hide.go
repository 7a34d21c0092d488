package controller

import (
	"context"
	"slices"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// hide takes a volume from a node, in whichever target that has it, and waits until the gateways have done so.
func (s *Service) hide(ctx context.Context, volume *pb.Volume, node attachment.Node, id string) error {
	name := volume.GetMeta().GetName()
	target, err := s.showing(ctx, volume, node)
	if err != nil || target == nil {
		return err
	}
	host, err := s.hostOf(ctx, node)
	if err != nil {
		return err
	}
	others := len(publishedTo(volume.GetMeta().GetLabels())) > 1
	dropHost := others
	shares := target.GetMeta().GetLabels()[labelShares]
	if shares != "" {
		dropHost = true
	} else if volume.GetMeta().GetLabels()[labelTarget] != "" {
		if dropHost, err = s.lastOf(ctx, volume, id); err != nil {
			return err
		}
	}
	changed, err := s.change(ctx, target.GetMeta().GetName(), func(target *pb.Target, _ int) error {
		if !others {
			target.Spec.Luns = slices.DeleteFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool { return lun.GetVolume() == name })
			if shares != "" {
				target.Meta.Labels[labelShares] = nobodys
			}
		}
		if dropHost && host != nil {
			target.Spec.Hosts = slices.DeleteFunc(target.GetSpec().GetHosts(), func(one string) bool { return one == host.GetMeta().GetName() })
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.settled(ctx, changed.GetMeta().GetName())
}

// showing is the target that has the volume for a node; nil: none has.
func (s *Service) showing(ctx context.Context, volume *pb.Volume, node attachment.Node) (*pb.Target, error) {
	name := volume.GetMeta().GetName()
	candidates := []*pb.Target{}
	for _, one := range []string{volume.GetMeta().GetLabels()[labelTarget], nodeTarget(volume, node)} {
		if one == "" {
			continue
		}
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: one})
		if err != nil && !absent(err) {
			return nil, told(err)
		}
		if err == nil {
			candidates = append(candidates, got.GetTarget())
		}
	}
	shared, err := s.targets.ListTargets(ctx, &pb.ListTargetsRequest{Options: &pb.ListOptions{
		LabelSelector: map[string]string{labelMadeBy: madeBy, labelShares: name}}})
	if err != nil {
		return nil, told(err)
	}
	for _, target := range append(candidates, shared.GetTargets()...) {
		maps := func(lun *pb.TargetLun) bool { return lun.GetVolume() == name }
		if target.GetMeta().GetLabels()[labelShares] == name || slices.ContainsFunc(target.GetSpec().GetLuns(), maps) {
			return target, nil
		}
	}
	return nil, nil
}

// lastOf says that a node has no other volume of the Target that the class names.
func (s *Service) lastOf(ctx context.Context, volume *pb.Volume, id string) (bool, error) {
	options := &pb.ListOptions{LabelSelector: map[string]string{labelMadeBy: madeBy,
		labelTarget: volume.GetMeta().GetLabels()[labelTarget], publishedLabel(id): id}}
	for {
		list, err := s.volumes.ListVolumes(ctx, &pb.ListVolumesRequest{Options: options})
		if err != nil {
			return false, told(err)
		}
		for _, other := range list.GetVolumes() {
			if other.GetMeta().GetName() != volume.GetMeta().GetName() {
				return false, nil
			}
		}
		if options.PageToken = list.GetNextPageToken(); options.PageToken == "" {
			return true, nil
		}
	}
}
