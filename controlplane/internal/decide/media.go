package decide

import (
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of volumes whose owner reports a problem of the medium.
const (
	// reasonMediumFailed: commands of hosts end with NOT READY.
	reasonMediumFailed = model.ReasonMediumFailed
	// reasonMediumMisplaced: hosts use the medium, but the next opening will fail.
	reasonMediumMisplaced = model.ReasonMediumMisplaced
	// reasonMediumStuck: commands of hosts wait for the medium.
	reasonMediumStuck = model.ReasonMediumStuck
	// reasonMediumErrors: commands of hosts end with errors of the medium. Others succeed, as far as known.
	reasonMediumErrors = model.ReasonMediumErrors
)

// medium returns the problem that the present owner reports of a served volume's medium; an empty reason: none.
func (v *LeaderView) medium(volume *model.Volume) (reason, message string) {
	ownership := volume.Status.Ownership
	r, known := v.report(volume.Meta.UID, ownership.Owner)
	if !known || r.State != model.VolumeServing || r.Epoch != ownership.Epoch {
		return "", ""
	}
	message = r.MediumProblem
	switch {
	case r.MediumNotReady:
		reason = reasonMediumFailed
	case r.MediumStuck:
		reason, message = reasonMediumStuck, "the medium completes none of the commands of hosts, or one of them takes more than 10 s; hosts wait for it"
	case r.MediumErrors:
		reason, message = reasonMediumErrors, "commands of hosts ended with errors of the medium within the last 30 s"
	case r.MediumProblem != "":
		reason = reasonMediumMisplaced
	default:
		return "", ""
	}
	return reason, fmt.Sprintf("gateway %s: %s", v.gatewayName(ownership.Owner.Number), message)
}

// stopsHosts reports whether hosts cannot use the medium now because of the reason that medium() returned.
func stopsHosts(reason string) bool {
	return reason == reasonMediumFailed || reason == reasonMediumStuck
}

// isUnusable reports whether a reason of the condition Degraded means that a volume's data cannot be served, or not after the next move.
func isUnusable(reason string) bool {
	switch reason {
	case reasonMediumFailed, reasonMediumMisplaced, reasonMediumStuck, reasonMediumErrors, reasonUnidentified, reasonImageMissing, reasonFailed:
		return true
	}
	return false
}

// unusableEvent returns an event if a volume became unusable or usable again, or the problem changed.
func unusableEvent(object model.Object, wanted []model.Condition) *Event {
	if _, ok := object.(*model.Volume); !ok {
		return nil
	}
	before, now := degraded(*object.StatusConditions()), degraded(wanted)
	switch {
	case isUnusable(now.Reason) && (before.Reason != now.Reason || before.Message != now.Message):
		return &Event{true, now.Reason, now.Message}
	case isUnusable(before.Reason) && !isUnusable(now.Reason):
		return &Event{false, "DataUsable", "the problem " + before.Reason + " has ended"}
	}
	return nil
}
