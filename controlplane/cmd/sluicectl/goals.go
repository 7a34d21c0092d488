package main

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// These functions return what an object still lacks to reach a goal; "": nothing. A nil object was deleted.

const gone = "it was deleted meanwhile"

// missingOf adapts a function of the kind's own type: for a nil object it returns `gone`.
func missingOf[M proto.Message](missing func(M) string) func(proto.Message) string {
	return func(object proto.Message) string {
		own, there := object.(M)
		if !there {
			return gone
		}
		return missing(own)
	}
}

func undeleted(object proto.Message) string {
	if object == nil {
		return ""
	}
	return "it is still being deleted"
}

var unmadeVolume = missingOf(func(v *pb.Volume) string {
	if v.GetStatus().GetCapacityBytes() <= 0 {
		return "no capacity is reported yet: its data has not been made"
	}
	switch v.GetStatus().GetOwnership() {
	case pb.OwnershipState_OWNERSHIP_STATE_OWNED, pb.OwnershipState_OWNERSHIP_STATE_UNOWNED,
		pb.OwnershipState_OWNERSHIP_STATE_UNSPECIFIED: // a volume without a target needs no owner
		return ""
	}
	return "its ownership is " + ownershipWord(v.GetStatus())
})

// ungrown waits for a capacity. The capacity can differ from the spec if another user has resized the volume since.
func ungrown(to int64) func(proto.Message) string {
	return missingOf(func(v *pb.Volume) string {
		if have := v.GetStatus().GetCapacityBytes(); have != to {
			return fmt.Sprintf("hosts see %s of %s", orDash(size(have)), size(to))
		}
		return ""
	})
}

// unsetVolume waits for the capacity of the spec: gateways apply the other fields at once.
var unsetVolume = missingOf(func(v *pb.Volume) string { return ungrown(v.GetSpec().GetSizeBytes())(v) })

func resizedAgain(from, now proto.Message) string {
	asked, instead := from.(*pb.Volume).GetSpec().GetSizeBytes(), now.(*pb.Volume).GetSpec().GetSizeBytes()
	if asked == instead {
		return ""
	}
	return fmt.Sprintf("another request asked for %s meanwhile, not %s", size(instead), size(asked))
}

// unmoved waits for a gateway by number, or for 0 any but the one that owned the volume before.
func unmoved(to uint32, before *pb.VolumeStatus) func(proto.Message) string {
	return missingOf(func(v *pb.Volume) string {
		status := v.GetStatus()
		owner := status.GetOwnerGateway()
		there := owner == to || to == 0 && owner != before.GetOwnerGateway()
		if there && status.GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED {
			return ""
		}
		return fmt.Sprintf("its ownership is %s, its owner gateway is %s", ownershipWord(status), ownerName(status))
	})
}

// moveRefused returns why the control plane has refused or abandoned the last requested move. A new request clears the result of
// the previous one, so an older result is never mistaken for this request's.
func moveRefused(object proto.Message) string {
	volume, _ := object.(*pb.Volume)
	condition := conditionOf(volume.GetStatus().GetConditions(), "Progressing")
	switch condition.GetReason() {
	case "MoveRefused", "MoveFailed":
		return "it does not move: " + condition.GetMessage()
	}
	return ""
}

// movedAgain compares the requested move with the move that is requested now. An early control plane does not report requested
// moves; then there is nothing to compare.
func movedAgain(from, now proto.Message) string {
	before, status := from.(*pb.Volume).GetStatus(), now.(*pb.Volume).GetStatus()
	asked, instead := before.GetRequestedMove(), status.GetRequestedMove()
	switch {
	case asked == nil || proto.Equal(asked.GetRequestTime(), instead.GetRequestTime()):
		return ""
	case instead == nil && (status.GetOwnership() != pb.OwnershipState_OWNERSHIP_STATE_OWNED ||
		status.GetOwnerGateway() == before.GetOwnerGateway()):
		return "" // refused or abandoned, perhaps: the reason is reported shortly after the request has ended
	case instead == nil:
		return fmt.Sprintf("no move is asked for any more; its ownership is %s, its owner gateway is %s",
			ownershipWord(status), ownerName(status))
	case instead.GetGateway() == asked.GetGateway(),
		asked.GetGateway() == 0 && instead.GetGateway() != before.GetOwnerGateway(): // this equals the goal
		return ""
	case instead.GetGateway() == 0:
		return "another request moves it to the best gateway meanwhile"
	}
	return fmt.Sprintf("another request moves it to gateway %s meanwhile", gatewayName(instead.GetGatewayName(), instead.GetGateway()))
}

func ownershipWord(status *pb.VolumeStatus) string {
	return word(status.GetOwnership(), "OWNERSHIP_STATE_")
}

var unmadeTarget = missingOf(func(t *pb.Target) string {
	if have, want := len(t.GetStatus().GetPaths()), int(t.GetSpec().GetPaths()); have < want {
		return fmt.Sprintf("it has %d of %d paths", have, want)
	}
	return unapplied(t)
})

// unappliedTarget waits for a change of a target, also for one with fewer gateways than it should have.
var unappliedTarget = missingOf(func(t *pb.Target) string {
	if len(t.GetStatus().GetPaths()) == 0 {
		return "no gateway exports it"
	}
	return unapplied(t)
})

// unapplied returns the first gateway of a target that has not applied its present spec.
func unapplied(t *pb.Target) string {
	for _, path := range t.GetStatus().GetPaths() {
		if !path.GetApplied() {
			return fmt.Sprintf("gateway %s has not applied it", cmp.Or(path.GetGateway(), number(path.GetTargetPortGroup())))
		}
	}
	return ""
}

// volumesOfTarget returns the goals that each volume of a target is served.
func volumesOfTarget(ctx context.Context, connection *grpc.ClientConn, object proto.Message) ([]goal, error) {
	target, _ := object.(*pb.Target)
	return servedVolumes(ctx, connection, target.GetSpec().GetLuns())
}

// servedVolumes returns the goals that the volume of each LUN is served: before that, hosts get NOT READY.
func servedVolumes(ctx context.Context, connection *grpc.ClientConn, luns []*pb.TargetLun) ([]goal, error) {
	var goals []goal
	for _, lun := range luns {
		volume, err := volumeKind.get(ctx, connection, lun.GetVolume())
		if err != nil {
			return nil, err
		}
		goals = append(goals, goal{kind: volumeKind, from: volume, missing: unserved, refused: unsupported})
	}
	return goals, nil
}

var unserved = missingOf(func(v *pb.Volume) string {
	ready := conditionOf(v.GetStatus().GetConditions(), "Ready")
	served := v.GetStatus().GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED
	if served && ready.GetStatus() != pb.ConditionStatus_CONDITION_STATUS_FALSE {
		return ""
	}
	return "no gateway serves it: its ownership is " + ownershipWord(v.GetStatus())
})

// unsupported returns why a pool can never make an object.
func unsupported(object proto.Message) string {
	for _, c := range conditionsOf(object) {
		if c.GetReason() == "Unsupported" && c.GetMessage() != "" {
			return "it cannot be made: " + c.GetMessage()
		}
	}
	return ""
}

var unmadeSnapshot = missingOf(func(s *pb.Snapshot) string {
	if !s.GetStatus().GetReady() {
		return "it has not been taken yet"
	}
	return ""
})

var unrolled = missingOf(func(v *pb.Volume) string {
	if why := rollBackFailed(v); why != "" || !v.GetStatus().GetRollingBack() {
		return why
	}
	return cmp.Or(conditionOf(v.GetStatus().GetConditions(), "Progressing").GetMessage(), "it is being rolled back")
})

// rollBackFailed returns why the last requested rollback failed. A new request clears the result of the previous one.
func rollBackFailed(object proto.Message) string {
	volume, _ := object.(*pb.Volume)
	condition := conditionOf(volume.GetStatus().GetConditions(), "Progressing")
	if volume.GetStatus().GetRollingBack() || condition.GetReason() != "RollBackFailed" {
		return ""
	}
	return "it was not rolled back, and is what it was before: " + condition.GetMessage()
}

var unmadePool = missingOf(func(p *pb.StoragePool) string {
	if ready := conditionOf(p.GetStatus().GetConditions(), "Ready"); ready.GetStatus() != pb.ConditionStatus_CONDITION_STATUS_TRUE {
		return cmp.Or(ready.GetMessage(), "no gateway has reported it yet")
	}
	return ""
})

// conditionOf returns the condition of a type; nil: none.
func conditionOf(all []*pb.Condition, kind string) *pb.Condition {
	for _, c := range all {
		if c.GetType() == kind {
			return c
		}
	}
	return nil
}

// unmadeGateway is also the goal of undrain.
var unmadeGateway = missingOf(func(g *pb.Gateway) string {
	return healthUnlike(g, pb.GatewayHealth_GATEWAY_HEALTH_READY)
})

var undrained = missingOf(func(g *pb.Gateway) string {
	return healthUnlike(g, pb.GatewayHealth_GATEWAY_HEALTH_DRAINED)
})

// drainedOrNot returns whether a later request changed the wanted drain state of a gateway.
func drainedOrNot(from, now proto.Message) string {
	asked, instead := from.(*pb.Gateway).GetStatus().GetDrainRequested(), now.(*pb.Gateway).GetStatus().GetDrainRequested()
	switch {
	case asked == instead:
		return ""
	case instead:
		return "another request drains it meanwhile"
	}
	return "another request ended its drain meanwhile"
}

func healthUnlike(g *pb.Gateway, wanted pb.GatewayHealth) string {
	status := g.GetStatus()
	if status.GetHealth() == wanted {
		return ""
	}
	return fmt.Sprintf("its health is %s, with %d volumes and %d sessions", word(status.GetHealth(), "GATEWAY_HEALTH_"),
		status.GetVolumesOwned(), status.GetSessions())
}
