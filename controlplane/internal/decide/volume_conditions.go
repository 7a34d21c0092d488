package decide

import (
	"cmp"
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// volumeConditions returns the conditions Ready, Progressing and Degraded of a volume.
func (v *LeaderView) volumeConditions(volume *model.Volume, image progress, now time.Time, decision *Decision) []model.Condition {
	ownership := volume.Status.Ownership
	wanted := v.target(volume.Meta.Name) != nil && !volume.Meta.Deleting()
	made := volume.Status.CapacityBytes > 0
	serves := ownership.State == model.Owned || ownership.State == model.Moving
	present := v.Standing(ownership.Owner)
	closed, why := v.unopenable(volume)
	if closed == "" && serves && present != Gone {
		closed, why = v.medium(volume)
	}
	// The recorded owner serves nothing if a gateway reports a later epoch whose owner is unknown (adoptLaterState).
	superseded := serves && present != Gone && decision.NoOwner
	owner := v.GatewayByNumber(ownership.Owner.Number)
	cutOff := ownership.State == model.Owned && present == Present && owner != nil && owner.Status.Health == model.GatewayNotServing
	ready := !stopsHosts(closed) && made && !superseded && !(wanted && cutOff) && (!wanted && closed == "" || wanted && serves && present != Gone)
	lost := wanted && made && volume.Status.RollBack == nil && (serves && present == Gone ||
		ownership.State == model.Orphaned || ownership.State == model.Unowned)
	pending := lost && (closed == "" || closed == reasonFailed) && v.takeoverPossible(volume)
	reason, message := "Ready", choose(wanted, fmt.Sprintf("gateway %s owns it", v.gatewayName(ownership.Owner.Number)), "no target exports it")
	switch {
	case !made:
		reason, message = cmp.Or(image.reason, "NoImage"), image.message
	case ready:
	case superseded:
		reason, message = reasonEpochLost, "a gateway reports a later epoch than the store has, and the owner of that epoch is unknown: "+
			"the store was restored from a backup"
	case wanted && cutOff:
		reason, message = model.ReasonOwnerNotServing, "hosts or other gateways do not reach its owner, gateway "+owner.Meta.Name+
			", and no other gateway can own it now"
	case pending:
		reason, message = model.ReasonTakeoverPending, cmp.Or(why, "it has no owner, and a gateway takes it")
	case closed != "" && (!serves || present == Gone), stopsHosts(closed):
		reason, message = closed, why
	case ownership.State == model.Fencing:
		reason, message = "Fencing", v.fencingMessage(volume)
	case volume.Status.RollBack != nil:
		reason, message = "RollingBack", image.message
	case serves:
		reason, message = ReasonOwnerDead, "its owner is gone, and no other gateway that reaches its data has a stream"
	case ownership.State == model.Opening, ownership.State == model.Acquiring:
		reason, message = string(ownership.State), "a gateway takes it"
	default:
		reason, message = reasonNoCandidate, "no gateway that reaches its data and exports its target has a stream"
	}
	absent := serves && present == Absent
	if left := NoStreamReportDelay - now.Sub(v.link(ownership.Owner.Number).lost); absent && left > 0 {
		absent = false
		decision.wait(left)
	}
	takenOut := v.takenOut(volume, v.StoragePools[volume.Spec.Pool])
	return []model.Condition{
		condition(model.ConditionReady, ready, reason, message),
		progressing(volume, wanted, image),
		degradedBy(v.refusals(volume), condition(model.ConditionDegraded,
			takenOut != "" || absent || closed != "" || image.reason == reasonJobFailed || image.reason == reasonJobUnsupported,
			choose(takenOut != "", reasonTakenOut, choose(absent, reasonNoStream, cmp.Or(closed, image.reason, "Healthy"))),
			cmp.Or(takenOut, choose(absent, "its owner has no stream to the control plane; it serves on", cmp.Or(why, image.message))))),
	}
}

// progressing returns the condition Progressing. The refusal of a requested move stays in it until the next request.
func progressing(volume *model.Volume, wanted bool, image progress) model.Condition {
	status := &volume.Status
	state, deleting := status.Ownership.State, volume.Meta.Deleting()
	growing := status.CapacityBytes > 0 &&
		(status.CapacityBytes < volume.Spec.SizeBytes || status.RollBack != nil || status.SharesWith != "")
	busy, reason, message := true, "", ""
	switch {
	case growing || deleting:
		reason, message = cmp.Or(image.reason, "Growing"), image.message
	case wanted && (state == model.Moving || state == model.Opening || state == model.Acquiring):
		reason, message = string(state), image.message
	case status.MoveRequest != nil || status.Move != nil:
		reason = reasonMoveRequest
	default:
		busy, reason = false, "Settled"
	}
	if r := status.Refusal; r != nil && status.RollBack == nil && !deleting {
		reason, message = r.Reason, r.Message+choose(message == "", "", "; "+message)
	}
	return condition(model.ConditionProgressing, busy, reason, message)
}
