package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const loseVolumes = "lose-volumes"

func nodeReplace(g *globals) *cobra.Command {
	var lose bool
	command := &cobra.Command{
		Use: "replace NODE", Short: "Remove a dead node, and print the command by which another server takes its place", Args: cobra.ExactArgs(1),
		Long: "Remove a node whose server is lost, and print the command by which another server takes its place. That server can have the name and\n" +
			"the address of the lost one. Run the command on a living server. First make sure that the lost server is off and stays off: a host\n" +
			"that still reaches it would write to volumes that the system no longer knows.\n\n" +
			"Volumes in Ceph go on at other gateways. Volumes on local pools of the node are lost with it, with their snapshots: the command names\n" +
			"them, and changes nothing without --" + loseVolumes + ". With it they are withdrawn from their targets and deleted. Their files are not\n" +
			"touched: if the disks survive, the data is in the directories of the pools.\n\n" +
			"The command refuses a node that is alive (use `node remove`), and a change after which the members of the store would have no\n" +
			"majority. Run it again after an interruption: it continues.",
		RunE: func(command *cobra.Command, names []string) error {
			return g.onNode(command, names[0], func(ctx context.Context, connection *grpc.ClientConn, leaving *leavingNode) error {
				if err := errors.Join(leaving.notThisServer(), leaving.isDead(ctx, connection), leaving.loses(lose)); err != nil {
					return err
				}
				return leaving.replace(ctx, connection)
			})
		},
	}
	command.Flags().BoolVar(&lose, loseVolumes, false, "delete the volumes on local pools of the node: their data is lost with the server")
	return command
}

// isDead returns an error if the node is alive, or if the other members of the store have no majority.
func (l *leavingNode) isDead(ctx context.Context, connection *grpc.ClientConn) error {
	alive := func(what string) error {
		return status.Errorf(codes.FailedPrecondition, "node %[1]s is alive: %[2]s. `sluicectl node remove %[1]s` removes a node that is alive. If its server is "+
			"lost, wait until the control plane has found that; nothing was changed", l.name, what)
	}
	for _, gateway := range l.gateways {
		switch health := gateway.GetStatus().GetHealth(); health {
		case pb.GatewayHealth_GATEWAY_HEALTH_NEW, pb.GatewayHealth_GATEWAY_HEALTH_DEAD:
		default:
			return alive("gateway " + gateway.GetMeta().GetName() + " is " + word(health, "GATEWAY_HEALTH_"))
		}
	}
	if !l.member {
		return nil
	}
	listed, err := pb.NewMembershipServiceClient(connection).ListMembers(ctx, &pb.ListMembersRequest{})
	if err != nil {
		return err
	}
	var voters int
	var silent []string
	for _, member := range listed.GetMembers() {
		switch {
		case member.GetNode() == l.name && member.GetReachable():
			return alive("its control plane answers")
		case member.GetNode() == l.name || member.GetRole() != pb.MemberRole_MEMBER_ROLE_VOTER:
		default:
			if voters++; !member.GetReachable() {
				silent = append(silent, member.GetNode())
			}
		}
	}
	if 2*len(silent) >= voters {
		return status.Errorf(codes.FailedPrecondition, "without node %s the members of the store would have no majority, because these do not answer: %s. Start "+
			"one of them first; nothing was changed", l.name, strings.Join(silent, ", "))
	}
	return nil
}

// loses returns an error if volumes are lost and the administrator has not accepted that.
func (l *leavingNode) loses(accepted bool) error {
	if accepted || len(l.bound) == 0 {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "these volumes are on local pools of node %s and are lost with its server: %s. Start the server again if that is "+
		"possible. --%s deletes the volumes with their snapshots; nothing was changed", l.name, strings.Join(namesOf(l.bound), ", "), loseVolumes)
}

// replace removes all that the cluster knows of the dead node, and prints the command for the new server. Each step does what is missing.
func (l *leavingNode) replace(ctx context.Context, connection *grpc.ClientConn) error {
	for _, volume := range l.bound {
		if err := l.lose(ctx, connection, volume); err != nil {
			return err
		}
	}
	if _, err := l.forget(ctx, connection); err != nil {
		return err
	}
	made, err := pb.NewMembershipServiceClient(connection).CreateJoinToken(ctx, &pb.CreateJoinTokenRequest{})
	if err != nil {
		return fmt.Errorf("node %s is removed; no token for the new server: %w", l.name, err)
	}
	_, _ = fmt.Fprintf(l.command.ErrOrStderr(), "\nnode %s is removed. Its lost volumes: %s.\n", l.name, orDash(strings.Join(namesOf(l.bound), ", ")))
	flags := ""
	for _, pool := range l.pools {
		if directory := pool.GetSpec().GetLocal().GetDirectory(); directory != "" {
			flags += " --pool " + directory
		}
	}
	if err := printJoin(l.command, made, flags); err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.command.ErrOrStderr(), "\nThen, on each other server: sluicectl node refresh")
	return err
}

// lose deletes a volume of a dead server with all that depends on it. No gateway can delete the data, so it is retained.
func (l *leavingNode) lose(ctx context.Context, connection *grpc.ClientConn, volume *pb.Volume) error {
	name := volume.GetMeta().GetName()
	for _, target := range l.seen.targets {
		withdrawn := modification{fields: []string{"spec.luns"}, apply: changing(func(target *pb.Target) ([]string, error) {
			return removeLuns(target, func(lun *pb.TargetLun) bool { return lun.GetVolume() == name }), nil
		})}
		if err := l.change(ctx, connection, target, withdrawn); err != nil {
			return err
		}
	}
	for _, snapshot := range ofType[*pb.Snapshot](l.seen.objects[kindNamed("snapshot")]) {
		if snapshot.GetSpec().GetVolume() != name {
			continue
		}
		for _, copied := range l.bound { // a volume on this node that was made from the snapshot
			if copied.GetSpec().GetSource().GetSnapshot() == snapshot.GetMeta().GetName() {
				if err := l.lose(ctx, connection, copied); err != nil {
					return err
				}
			}
		}
		if err := l.deleteRetained(ctx, connection, snapshot); err != nil {
			return err
		}
	}
	return l.deleteRetained(ctx, connection, volume)
}

// deleteRetained deletes a volume or snapshot of a node that has no gateway, unless it is gone.
func (l *leavingNode) deleteRetained(ctx context.Context, connection *grpc.ClientConn, object proto.Message) error {
	if slices.Contains(l.lost, object) {
		return nil
	}
	retained := modification{fields: []string{"spec.reclaim_policy"}, apply: func(object proto.Message) ([]string, error) {
		return retain(object), nil
	}}
	if err := l.change(ctx, connection, object, retained); err != nil {
		return err
	}
	l.lost = append(l.lost, object)
	return l.delete(ctx, connection, object)
}

// retain gives a volume or a snapshot the policy that keeps its data.
func retain(object proto.Message) []string {
	var policy *pb.ReclaimPolicy
	switch of := object.(type) {
	case *pb.Volume:
		policy = &of.Spec.ReclaimPolicy
	case *pb.Snapshot:
		policy = &of.Spec.ReclaimPolicy
	}
	if *policy == pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN {
		return nil
	}
	*policy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
	return []string{"its data is left where it is, because no gateway reaches it"}
}

// change modifies an object, and prints each change.
func (l *leavingNode) change(ctx context.Context, connection *grpc.ClientConn, object proto.Message, m modification) error {
	k, name := kindOf(object), metaOf(object).GetName()
	_, changes, err := k.modify(ctx, connection, name, m, false)
	if err != nil {
		return k.about(name, err)
	}
	for _, change := range changes {
		_, _ = fmt.Fprintf(l.command.OutOrStdout(), "%s %s: %s\n", k.name, name, change)
	}
	return nil
}
