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

var ungrown = missingOf(func(v *pb.Volume) string {
	if have, want := v.GetStatus().GetCapacityBytes(), v.GetSpec().GetSizeBytes(); have != want {
		return fmt.Sprintf("hosts see %s of %s", orDash(size(have)), size(want))
	}
	return ""
})

// unmoved waits for a gateway by number, or for 0 any but the one that owned the volume before.
func unmoved(to uint32, before *pb.VolumeStatus) func(proto.Message) string {
	return missingOf(func(v *pb.Volume) string {
		status := v.GetStatus()
		owner := status.GetOwnerGateway()
		there := owner == to || to == 0 && owner != before.GetOwnerGateway()
		if there && status.GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED {
			return ""
		}
		return fmt.Sprintf("its ownership is %s, its owner gateway number %s", ownershipWord(status), number(owner))
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
	if !v.GetStatus().GetRollingBack() {
		return ""
	}
	return cmp.Or(conditionOf(v.GetStatus().GetConditions(), "Progressing").GetMessage(), "it is being rolled back")
})

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

func healthUnlike(g *pb.Gateway, wanted pb.GatewayHealth) string {
	status := g.GetStatus()
	if status.GetHealth() == wanted {
		return ""
	}
	return fmt.Sprintf("its health is %s, with %d volumes and %d sessions", word(status.GetHealth(), "GATEWAY_HEALTH_"),
		status.GetVolumesOwned(), status.GetSessions())
}
