package main

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// What objects lack before something that was asked for has come about; "" for nothing. A nil object is gone.

const gone = "somebody has deleted it meanwhile"

// missingOf makes such a function of one of the noun's own type: there, gone is what is missing.
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
		pb.OwnershipState_OWNERSHIP_STATE_UNSPECIFIED: // nobody should own what no target maps
		return ""
	}
	return "its ownership is " + ownershipWord(v.GetStatus())
})

// ungrown waits for a capacity, which is another one than the spec's when somebody has resized the volume again.
func ungrown(to int64) func(proto.Message) string {
	return missingOf(func(v *pb.Volume) string {
		if have := v.GetStatus().GetCapacityBytes(); have != to {
			return fmt.Sprintf("hosts see %s of %s", orDash(size(have)), size(to))
		}
		return ""
	})
}

func resizedAgain(from, now proto.Message) string {
	asked, instead := from.(*pb.Volume).GetSpec().GetSizeBytes(), now.(*pb.Volume).GetSpec().GetSizeBytes()
	if asked == instead {
		return ""
	}
	return fmt.Sprintf("somebody has asked for %s meanwhile, not %s", size(instead), size(asked))
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

// moveRefused is why the control plane has refused or given up the move that was asked for last. A request forgets what the one
// before it came to, so none of that is taken for this one's.
func moveRefused(object proto.Message) string {
	volume, _ := object.(*pb.Volume)
	told := conditionOf(volume.GetStatus().GetConditions(), "Progressing")
	switch told.GetReason() {
	case "MoveRefused", "MoveFailed":
		return "it does not move: " + told.GetMessage()
	}
	return ""
}

// movedAgain compares the move that was asked for with the one that is asked for now. A control plane from before it told of them
// has none to compare.
func movedAgain(from, now proto.Message) string {
	before, status := from.(*pb.Volume).GetStatus(), now.(*pb.Volume).GetStatus()
	asked, instead := before.GetRequestedMove(), status.GetRequestedMove()
	switch {
	case asked == nil || proto.Equal(asked.GetRequestTime(), instead.GetRequestTime()):
		return ""
	case instead == nil && (status.GetOwnership() != pb.OwnershipState_OWNERSHIP_STATE_OWNED ||
		status.GetOwnerGateway() == before.GetOwnerGateway()):
		return "" // refused or given up, perhaps: why is told a moment after the request is over
	case instead == nil:
		return fmt.Sprintf("no move is asked for any more; its ownership is %s, its owner gateway is %s",
			ownershipWord(status), ownerName(status))
	case instead.GetGateway() == asked.GetGateway(),
		asked.GetGateway() == 0 && instead.GetGateway() != before.GetOwnerGateway(): // that is what was wanted, too
		return ""
	case instead.GetGateway() == 0:
		return "somebody has asked meanwhile to move it to whichever gateway suits best"
	}
	return fmt.Sprintf("somebody has asked meanwhile to move it to gateway %s", gatewayName(instead.GetGatewayName(), instead.GetGateway()))
}

func ownershipWord(status *pb.VolumeStatus) string {
	return word(status.GetOwnership(), "OWNERSHIP_STATE_")
}

var unmadeTarget = missingOf(func(t *pb.Target) string {
	if have, want := len(t.GetStatus().GetPaths()), int(t.GetSpec().GetPaths()); have < want {
		return fmt.Sprintf("it has %d of %d paths", have, want)
	}
	for _, path := range t.GetStatus().GetPaths() {
		if !path.GetApplied() {
			return fmt.Sprintf("gateway %s has not applied it", cmp.Or(path.GetGateway(), number(path.GetTargetPortGroup())))
		}
	}
	return ""
})

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

// rollBackFailed is why the rollback that was asked for last came to nothing. A request forgets what the one before it came to.
func rollBackFailed(object proto.Message) string {
	volume, _ := object.(*pb.Volume)
	told := conditionOf(volume.GetStatus().GetConditions(), "Progressing")
	if volume.GetStatus().GetRollingBack() || told.GetReason() != "RollBackFailed" {
		return ""
	}
	return "it was not rolled back, and is what it was before: " + told.GetMessage()
}

var unmadePool = missingOf(func(p *pb.StoragePool) string {
	if ready := conditionOf(p.GetStatus().GetConditions(), "Ready"); ready.GetStatus() != pb.ConditionStatus_CONDITION_STATUS_TRUE {
		return cmp.Or(ready.GetMessage(), "no gateway has reported it yet")
	}
	return ""
})

// conditionOf a type, nil where there is none.
func conditionOf(all []*pb.Condition, kind string) *pb.Condition {
	for _, c := range all {
		if c.GetType() == kind {
			return c
		}
	}
	return nil
}

// unmadeGateway is what undrain waits for, too.
var unmadeGateway = missingOf(func(g *pb.Gateway) string {
	return healthUnlike(g, pb.GatewayHealth_GATEWAY_HEALTH_READY)
})

var undrained = missingOf(func(g *pb.Gateway) string {
	return healthUnlike(g, pb.GatewayHealth_GATEWAY_HEALTH_DRAINED)
})

// drainedOrNot is what is wanted of a gateway, which one may ask for and another take back.
func drainedOrNot(from, now proto.Message) string {
	asked, instead := from.(*pb.Gateway).GetStatus().GetDrainRequested(), now.(*pb.Gateway).GetStatus().GetDrainRequested()
	switch {
	case asked == instead:
		return ""
	case instead:
		return "somebody has asked to drain it meanwhile"
	}
	return "somebody has asked to undrain it meanwhile"
}

func healthUnlike(g *pb.Gateway, wanted pb.GatewayHealth) string {
	status := g.GetStatus()
	if status.GetHealth() == wanted {
		return ""
	}
	return fmt.Sprintf("its health is %s, with %d volumes and %d sessions", word(status.GetHealth(), "GATEWAY_HEALTH_"),
		status.GetVolumesOwned(), status.GetSessions())
}
