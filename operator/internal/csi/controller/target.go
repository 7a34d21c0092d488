package controller

import (
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// nodeTarget is the name of the target by which a node has volumes of a pool that it shares with nobody.
func nodeTarget(volume *pb.Volume, node attachment.Node) string {
	gateways := volume.GetMeta().GetLabels()[labelGatewayPool]
	return tidy("csi-", "csi."+gateways+"."+volume.GetSpec().GetPool()+"."+node.Name)
}

// show makes the volume a LUN of a target that the host may log in to.
func (s *Service) show(ctx context.Context, volume *pb.Volume, node attachment.Node, host string, shared, readOnly bool,
) (*pb.Target, error) {
	name := volume.GetMeta().GetName()
	lun := &pb.TargetLun{Volume: name, ReadOnly: readOnly}
	var target *pb.Target
	var err error
	switch {
	case volume.GetMeta().GetLabels()[labelTarget] != "":
		var got *pb.GetTargetResponse
		got, err = s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: volume.GetMeta().GetLabels()[labelTarget]})
		target = got.GetTarget()
	case shared:
		target, err = s.sharedTarget(ctx, volume)
	default:
		target, err = s.ensureTarget(ctx, s.fresh(volume, nodeTarget(volume, node), nil))
	}
	if err != nil {
		return nil, told(err)
	}
	return s.change(ctx, target.GetMeta().GetName(), func(target *pb.Target, tried int) error {
		if !slices.Contains(target.GetSpec().GetHosts(), host) {
			target.Spec.Hosts = append(target.Spec.Hosts, host)
		}
		for _, is := range target.GetSpec().GetLuns() {
			if is.GetVolume() == name {
				if is.GetReadOnly() != readOnly {
					return status.Errorf(codes.AlreadyExists, "volume %s is published, and there read-only is %v", name, is.GetReadOnly())
				}
				return nil
			}
		}
		lun.Id = number(volume, target, tried)
		target.Spec.Luns = append(target.Spec.Luns, lun)
		return nil
	})
}

// fresh is a target of ours that is not stored yet.
func (s *Service) fresh(volume *pb.Volume, name string, labels map[string]string) *pb.Target {
	all := map[string]string{labelMadeBy: madeBy}
	for key, value := range labels {
		all[key] = value
	}
	paths, _ := strconv.ParseInt(volume.GetMeta().GetLabels()[labelPaths], 10, 32) // none: the control plane's default
	return &pb.Target{Meta: &pb.ObjectMeta{Name: name, Labels: all},
		Spec: &pb.TargetSpec{GatewayPool: volume.GetMeta().GetLabels()[labelGatewayPool], Paths: int32(paths)}}
}

func (s *Service) ensureTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: wanted.GetMeta().GetName()})
	if err == nil && got.GetTarget().GetMeta().GetLabels()[labelMadeBy] != madeBy {
		return nil, precondition("target %s was not made by %s, which needs its name", wanted.GetMeta().GetName(), madeBy)
	}
	if !absent(err) {
		return got.GetTarget(), err
	}
	created, err := s.targets.CreateTarget(ctx, &pb.CreateTargetRequest{Target: wanted})
	if status.Code(err) == codes.AlreadyExists {
		return nil, status.Errorf(codes.Aborted, "target %s was made this moment; try again", wanted.GetMeta().GetName())
	}
	return created.GetTarget(), err
}

// sharedTarget is a target for this one volume: the nodes that share it share no other. Such targets are used again and again,
// by one volume after the other: each new one would take relative port identifiers, of which there are 65,535 for ever.
func (s *Service) sharedTarget(ctx context.Context, volume *pb.Volume) (*pb.Target, error) {
	name := volume.GetMeta().GetName()
	wanted := s.fresh(volume, "csi.shared."+volume.GetMeta().GetUid(), map[string]string{labelShares: name})
	mine, err := s.targets.ListTargets(ctx, &pb.ListTargetsRequest{Options: &pb.ListOptions{
		LabelSelector: map[string]string{labelMadeBy: madeBy, labelShares: name}}})
	if err != nil || len(mine.GetTargets()) > 0 {
		return first(mine.GetTargets()), err
	}
	free, err := s.targets.ListTargets(ctx, &pb.ListTargetsRequest{Options: &pb.ListOptions{
		LabelSelector: map[string]string{labelMadeBy: madeBy, labelShares: nobodys}}})
	if err != nil {
		return nil, err
	}
	for _, target := range free.GetTargets() {
		if target.GetSpec().GetGatewayPool() != wanted.GetSpec().GetGatewayPool() {
			continue
		}
		target.Meta.Labels[labelShares] = name
		taken, err := s.targets.UpdateTarget(ctx, &pb.UpdateTargetRequest{Target: target,
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"meta.labels"}}})
		if status.Code(err) != codes.Aborted { // else somebody else took it
			return taken.GetTarget(), err
		}
	}
	return s.ensureTarget(ctx, wanted)
}

func first(targets []*pb.Target) *pb.Target {
	if len(targets) == 0 {
		return nil
	}
	return targets[0]
}

// change changes LUNs, hosts and labels of a target as they are now, and says how often a number of a LUN was refused.
func (s *Service) change(ctx context.Context, name string, how func(target *pb.Target, refused int) error) (*pb.Target, error) {
	refused := 0
	for tries := 0; tries < casTries; {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil {
			return nil, told(err)
		}
		target := got.GetTarget()
		if err := how(target, refused); err != nil {
			return nil, err
		}
		changed, err := s.targets.UpdateTarget(ctx, &pb.UpdateTargetRequest{Target: target, UpdateMask: &fieldmaskpb.FieldMask{
			Paths: []string{"spec.luns", "spec.hosts", "meta.labels"}}})
		switch {
		case numberRefused(err) && refused < numbersTried:
			refused++
		case status.Code(err) == codes.Aborted:
			tries++
		case status.Code(err) == codes.AlreadyExists:
			return nil, precondition("%s", status.Convert(told(err)).Message()) // another target maps the volume
		default:
			return changed.GetTarget(), told(err)
		}
	}
	return nil, status.Errorf(codes.Aborted, "target %s changes all the time; try again", name)
}
