package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// defaultPaths is the default number of gateways of a target (TargetSpec.paths).
const defaultPaths = 2

// pathsOf returns the number of gateways that the class of a volume wants.
func pathsOf(volume *pb.Volume) int32 {
	paths, err := strconv.ParseInt(volume.GetMeta().GetLabels()[labelPaths], 10, 32)
	if err != nil {
		return defaultPaths
	}
	return int32(paths)
}

// nodeTargets returns the names of targets in which a node may have an unshared volume of a pool, the preferred one first.
// Classes with another number of paths use another target. The second name is the one that earlier releases used for volumes of
// such a class.
func nodeTargets(volume *pb.Volume, node attachment.Node) []string {
	gateways, paths := volume.GetMeta().GetLabels()[labelGatewayPool], pathsOf(volume)
	name := "csi." + gateways + "." + volume.GetSpec().GetPool() + "." + node.Name
	if paths == defaultPaths {
		return []string{tidy("csi-", name)}
	}
	return []string{tidy("csi-", fmt.Sprintf("%s.paths-%d", name, paths)), tidy("csi-", name)}
}

// show makes the volume a LUN of a target to which the host may log in. The error is errNoHost if the host no longer exists.
func (s *Service) show(ctx context.Context, volume *pb.Volume, node attachment.Node, host string, shared, readOnly bool,
) (*pb.Target, error) {
	name := volume.GetMeta().GetName()
	target, err := s.ensureVolumeTarget(ctx, volume, node, host, shared, readOnly)
	if err != nil {
		return nil, err
	}
	shown, err := s.change(ctx, target.GetMeta().GetName(), func(target *pb.Target, tried int) error {
		if target.GetMeta().GetDeleteTime() != nil {
			return beingDeleted(target)
		}
		if why := keptByResource(target); why != "" {
			return precondition("%s", why)
		}
		if leftovers.Idle(target) {
			target.Spec.Paths = pathsOf(volume) // a target of an earlier release, whose name did not include the number
		}
		if !slices.Contains(target.GetSpec().GetHosts(), host) {
			target.Spec.Hosts = append(target.Spec.Hosts, host)
		}
		for _, lun := range target.GetSpec().GetLuns() {
			if lun.GetVolume() == name {
				if lun.GetReadOnly() != readOnly {
					return status.Errorf(codes.AlreadyExists, "volume %s is published, and there read-only is %v", name, lun.GetReadOnly())
				}
				return nil
			}
		}
		target.Spec.Luns = append(target.Spec.Luns, &pb.TargetLun{Id: number(volume, target, tried), Volume: name, ReadOnly: readOnly})
		return nil
	})
	if absent(err) {
		return nil, beingDeleted(target)
	}
	return shown, err
}

// ensureVolumeTarget finds or creates the target of a volume. A new target has the volume and the host from the start: it gets
// ports only on gateways that it needs, and never appears unused.
func (s *Service) ensureVolumeTarget(ctx context.Context, volume *pb.Volume, node attachment.Node, host string, shared, readOnly bool,
) (*pb.Target, error) {
	if named := volume.GetMeta().GetLabels()[labelTarget]; named != "" {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: named})
		return got.GetTarget(), clientError(err)
	}
	fresh := &pb.Target{
		Meta: &pb.ObjectMeta{Labels: map[string]string{labelMadeBy: madeBy}},
		Spec: &pb.TargetSpec{GatewayPool: volume.GetMeta().GetLabels()[labelGatewayPool], Paths: pathsOf(volume), Hosts: []string{host}},
	}
	fresh.Spec.Luns = []*pb.TargetLun{{Id: number(volume, fresh, 0), Volume: volume.GetMeta().GetName(), ReadOnly: readOnly}}
	if shared {
		fresh.Meta.Name = "csi.shared." + volume.GetMeta().GetUid()
		fresh.Meta.Labels[labelShares] = volume.GetMeta().GetName()
		return s.sharedTarget(ctx, fresh)
	}
	fresh.Meta.Labels[labelNode] = node.Name
	names := nodeTargets(volume, node)
	for _, name := range names[1:] { // a published volume stays in its target
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil && !absent(err) {
			return nil, clientError(err)
		}
		if err == nil && has(got.GetTarget(), volume) {
			return got.GetTarget(), nil
		}
	}
	fresh.Meta.Name = names[0]
	return s.ensureTarget(ctx, fresh)
}

// ensureTarget returns the target of that name, and creates it if needed.
func (s *Service) ensureTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	name := wanted.GetMeta().GetName()
	got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
	if absent(err) {
		return s.createTarget(ctx, wanted)
	}
	if err != nil {
		return nil, clientError(err)
	}
	node := got.GetTarget().GetMeta().GetLabels()[labelNode]
	switch {
	case !leftovers.Mine(got.GetTarget().GetMeta()):
		return nil, precondition("target %s was not made by %s, which needs its name", name, madeBy)
	case node != "" && node != wanted.GetMeta().GetLabels()[labelNode]: // `a.b` and `c` yield the same name as `a` and `b.c`
		return nil, precondition("target %s is node %s's, and node %s would need its name: rename the node, or a pool", name, node,
			wanted.GetMeta().GetLabels()[labelNode])
	}
	return got.GetTarget(), nil
}

func (s *Service) createTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	created, err := s.targets.CreateTarget(ctx, &pb.CreateTargetRequest{Target: wanted})
	// A target of that name existed recently, and hosts may still have its devices.
	for tried := 0; numberRefused(err) && tried < numbersTried; tried++ {
		wanted.Spec.Luns[0].Id++
		created, err = s.targets.CreateTarget(ctx, &pb.CreateTargetRequest{Target: wanted})
	}
	switch {
	case status.Code(err) == codes.AlreadyExists && refusedField(err, "spec.luns[", ""):
		return nil, precondition("%s", status.Convert(clientError(err)).Message()) // another target maps the volume
	case status.Code(err) == codes.AlreadyExists:
		return nil, status.Errorf(codes.Aborted, "target %s was made this moment; try again", wanted.GetMeta().GetName())
	case hostRefused(err):
		return nil, errNoHost
	}
	return created.GetTarget(), clientError(err)
}

// sharedTarget returns a target for the single volume of `wanted`, because the nodes that share it share no other volume. Such
// targets are reused by later volumes with the same number of paths: each new target would take relative port identifiers, of
// which there are only 65,535 in total.
func (s *Service) sharedTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	name := wanted.GetMeta().GetLabels()[labelShares]
	mine, err := s.sharedBy(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(mine) > 0 {
		if mine[0].GetMeta().GetDeleteTime() != nil {
			return nil, beingDeleted(mine[0])
		}
		return mine[0], nil
	}
	free, err := s.sharedBy(ctx, noVolume)
	if err != nil {
		return nil, err
	}
	for _, target := range free {
		if target.GetSpec().GetGatewayPool() != wanted.GetSpec().GetGatewayPool() || target.GetSpec().GetPaths() != wanted.GetSpec().GetPaths() {
			continue
		}
		if taken, err := s.occupy(ctx, target, name); taken != nil || err != nil {
			return taken, err
		}
	}
	return s.ensureTarget(ctx, wanted)
}

// occupy assigns a waiting target to that volume; nil: it no longer waits. The target may have changed since it was read without
// being assigned: its last volume has just left, and its status changes after that.
func (s *Service) occupy(ctx context.Context, target *pb.Target, volume string) (*pb.Target, error) {
	for range casTries {
		if target.GetMeta().GetDeleteTime() != nil || target.GetMeta().GetLabels()[labelShares] != noVolume {
			return nil, nil
		}
		target.Meta.Labels[labelShares] = volume
		taken, err := s.targets.UpdateTarget(ctx, &pb.UpdateTargetRequest{Target: target,
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"meta.labels"}}})
		switch {
		case err == nil:
			return taken.GetTarget(), nil
		case absent(err):
			return nil, nil
		case status.Code(err) != codes.Aborted:
			return nil, clientError(err)
		}
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: target.GetMeta().GetName()})
		if absent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, clientError(err)
		}
		target = got.GetTarget()
	}
	return nil, nil
}

// sharedBy returns the targets for one volume that several nodes use; noVolume: those that wait for one.
func (s *Service) sharedBy(ctx context.Context, volume string) ([]*pb.Target, error) {
	labels := map[string]string{labelMadeBy: madeBy, labelShares: volume}
	all, err := client.Collect(client.All(ctx, s.targets.ListTargets, &pb.ListTargetsRequest{Options: &pb.ListOptions{LabelSelector: labels}},
		(*pb.ListTargetsResponse).GetTargets))
	return all, clientError(err)
}

// has reports whether the volume is a LUN of a target.
func has(target *pb.Target, volume *pb.Volume) bool {
	return slices.ContainsFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool {
		return lun.GetVolume() == volume.GetMeta().GetName()
	})
}

// keptByResource returns why a target of the operator cannot have a volume of the driver: the operator would remove the LUN
// again.
func keptByResource(target *pb.Target) string {
	labels := target.GetMeta().GetLabels()
	if labels[labelUID] == "" {
		return ""
	}
	return fmt.Sprintf("target %s is kept by the Target resource %s, whose LUNs the operator keeps as they are written there: make a "+
		"target by `sluicectl target create`, and name that", target.GetMeta().GetName(), labels[labelResource])
}

func beingDeleted(target *pb.Target) error {
	return status.Errorf(codes.Aborted, "target %s is being deleted, as its gateway pool may be; try again", target.GetMeta().GetName())
}

// change changes spec and labels of a target, if there is any change. It tells `how` how often a LUN number was refused. The
// error is errNoHost if a host no longer exists.
func (s *Service) change(ctx context.Context, name string, how func(target *pb.Target, refused int) error) (*pb.Target, error) {
	refused := 0
	for tries := 0; tries < casTries; {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil {
			return nil, clientError(err)
		}
		target := proto.Clone(got.GetTarget()).(*pb.Target)
		if err := how(target, refused); err != nil {
			return nil, err
		}
		if proto.Equal(target, got.GetTarget()) {
			return target, nil
		}
		changed, err := s.targets.UpdateTarget(ctx, &pb.UpdateTargetRequest{Target: target, UpdateMask: &fieldmaskpb.FieldMask{
			Paths: []string{"spec.luns", "spec.hosts", "spec.paths", "meta.labels"}}})
		switch {
		case numberRefused(err) && refused < numbersTried:
			refused++
		case hostRefused(err):
			return nil, errNoHost
		case status.Code(err) == codes.Aborted:
			tries++
		case status.Code(err) == codes.AlreadyExists:
			return nil, precondition("%s", status.Convert(clientError(err)).Message()) // another target maps the volume
		default:
			return changed.GetTarget(), clientError(err)
		}
	}
	return nil, status.Errorf(codes.Aborted, "target %s changes all the time; try again", name)
}
