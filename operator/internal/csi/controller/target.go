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

// defaultPaths is how many gateways a target has where nobody says (TargetSpec.paths).
const defaultPaths = 2

// pathsOf is how many gateways the class of a volume wants.
func pathsOf(volume *pb.Volume) int32 {
	paths, err := strconv.ParseInt(volume.GetMeta().GetLabels()[labelPaths], 10, 32)
	if err != nil {
		return defaultPaths
	}
	return int32(paths)
}

// nodeTargets are the names of targets by which a node may have a volume of a pool that it shares with nobody, the right one first.
// Classes with another number of paths have another target. The second is where volumes of such a class were before that was so.
func nodeTargets(volume *pb.Volume, node attachment.Node) []string {
	gateways, paths := volume.GetMeta().GetLabels()[labelGatewayPool], pathsOf(volume)
	name := "csi." + gateways + "." + volume.GetSpec().GetPool() + "." + node.Name
	if paths == defaultPaths {
		return []string{tidy("csi-", name)}
	}
	return []string{tidy("csi-", fmt.Sprintf("%s.paths-%d", name, paths)), tidy("csi-", name)}
}

// show makes the volume a LUN of a target that the host may log in to. The error is errNoHost where the host is not there any more.
func (s *Service) show(ctx context.Context, volume *pb.Volume, node attachment.Node, host string, shared, readOnly bool,
) (*pb.Target, error) {
	name := volume.GetMeta().GetName()
	target, err := s.place(ctx, volume, node, host, shared, readOnly)
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
			target.Spec.Paths = pathsOf(volume) // one from before names told how many
		}
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
		target.Spec.Luns = append(target.Spec.Luns, &pb.TargetLun{Id: number(volume, target, tried), Volume: name, ReadOnly: readOnly})
		return nil
	})
	if absent(err) {
		return nil, beingDeleted(target)
	}
	return shown, err
}

// place finds or makes the target that a volume belongs in. One that is made has the volume and the host from the beginning: it gets
// ports on no gateway that it has no use for, and never looks as if nobody needed it.
func (s *Service) place(ctx context.Context, volume *pb.Volume, node attachment.Node, host string, shared, readOnly bool,
) (*pb.Target, error) {
	if named := volume.GetMeta().GetLabels()[labelTarget]; named != "" {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: named})
		return got.GetTarget(), told(err)
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
	for _, name := range names[1:] { // a volume that is published stays where it is
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil && !absent(err) {
			return nil, told(err)
		}
		if err == nil && has(got.GetTarget(), volume) {
			return got.GetTarget(), nil
		}
	}
	fresh.Meta.Name = names[0]
	return s.ensureTarget(ctx, fresh)
}

// ensureTarget finds the target of that name, or makes it.
func (s *Service) ensureTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	name := wanted.GetMeta().GetName()
	got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
	if absent(err) {
		return s.createTarget(ctx, wanted)
	}
	if err != nil {
		return nil, told(err)
	}
	node := got.GetTarget().GetMeta().GetLabels()[labelNode]
	switch {
	case !leftovers.Mine(got.GetTarget().GetMeta()):
		return nil, precondition("target %s was not made by %s, which needs its name", name, madeBy)
	case node != "" && node != wanted.GetMeta().GetLabels()[labelNode]: // `a.b` and `c` make the same name as `a` and `b.c`
		return nil, precondition("target %s is node %s's, and node %s would need its name: rename the node, or a pool", name, node,
			wanted.GetMeta().GetLabels()[labelNode])
	}
	return got.GetTarget(), nil
}

func (s *Service) createTarget(ctx context.Context, wanted *pb.Target) (*pb.Target, error) {
	created, err := s.targets.CreateTarget(ctx, &pb.CreateTargetRequest{Target: wanted})
	// One of that name was there not long ago, and hosts may still have its devices.
	for tried := 0; numberRefused(err) && tried < numbersTried; tried++ {
		wanted.Spec.Luns[0].Id++
		created, err = s.targets.CreateTarget(ctx, &pb.CreateTargetRequest{Target: wanted})
	}
	switch {
	case status.Code(err) == codes.AlreadyExists && refusedField(err, "spec.luns[", ""):
		return nil, precondition("%s", status.Convert(told(err)).Message()) // another target maps the volume
	case status.Code(err) == codes.AlreadyExists:
		return nil, status.Errorf(codes.Aborted, "target %s was made this moment; try again", wanted.GetMeta().GetName())
	case hostRefused(err):
		return nil, errNoHost
	}
	return created.GetTarget(), told(err)
}

// sharedTarget is a target for the one volume of `wanted`: the nodes that share it share no other. Such targets are used again and
// again, by one volume after the other that wants as many paths: each new one would take relative port identifiers, of which there
// are 65,535 for ever.
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
	free, err := s.sharedBy(ctx, nobodys)
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

// occupy makes a target that waits for a volume that volume's; nil: it doesn't wait any more. It may have changed since it was read
// without being taken: its last volume has just left it, and its status follows.
func (s *Service) occupy(ctx context.Context, target *pb.Target, volume string) (*pb.Target, error) {
	for range casTries {
		if target.GetMeta().GetDeleteTime() != nil || target.GetMeta().GetLabels()[labelShares] != nobodys {
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
			return nil, told(err)
		}
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: target.GetMeta().GetName()})
		if absent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, told(err)
		}
		target = got.GetTarget()
	}
	return nil, nil
}

// sharedBy are the targets for one volume that several nodes reach; nobodys: those that wait for one.
func (s *Service) sharedBy(ctx context.Context, volume string) ([]*pb.Target, error) {
	labels := map[string]string{labelMadeBy: madeBy, labelShares: volume}
	all, err := client.Collect(client.All(ctx, s.targets.ListTargets, &pb.ListTargetsRequest{Options: &pb.ListOptions{LabelSelector: labels}},
		(*pb.ListTargetsResponse).GetTargets))
	return all, told(err)
}

// has says that the volume is a LUN of a target.
func has(target *pb.Target, volume *pb.Volume) bool {
	return slices.ContainsFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool {
		return lun.GetVolume() == volume.GetMeta().GetName()
	})
}

// keptByResource says why a target can have no volume of ours, if the operator keeps it: it would take the LUN away again.
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

// change changes spec and labels of a target as they are now, where it changes anything, and says how often a number of a LUN was
// refused. The error is errNoHost where a host is not there any more.
func (s *Service) change(ctx context.Context, name string, how func(target *pb.Target, refused int) error) (*pb.Target, error) {
	refused := 0
	for tries := 0; tries < casTries; {
		got, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
		if err != nil {
			return nil, told(err)
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
			return nil, precondition("%s", status.Convert(told(err)).Message()) // another target maps the volume
		default:
			return changed.GetTarget(), told(err)
		}
	}
	return nil, status.Errorf(codes.Aborted, "target %s changes all the time; try again", name)
}
