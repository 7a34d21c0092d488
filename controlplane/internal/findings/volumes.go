package findings

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// takeoverLimit is the time that a takeover may take before its volume counts as having no owner. It is that of an opening.
	takeoverLimit = 15 * time.Second
	// deletionLimit is the time that a deletion may take before it is a finding.
	deletionLimit = time.Minute
)

// wanted reports whether hosts are to use a volume.
func (s *survey) wanted(v *model.Volume) bool {
	target := s.TargetOf(v.Meta.Name)
	return target != nil && !target.Meta.Deleting() && !v.Meta.Deleting()
}

func (s *survey) volume(v *model.Volume) {
	degraded := conditionOf(v, model.ConditionDegraded)
	if degraded.Status == model.ConditionTrue {
		s.degradedVolume(v, degraded)
	}
	s.ownerless(v)
	s.held(v, v.Status.Held)
	s.deletion(v)
	progress := conditionOf(v, model.ConditionProgressing)
	switch progress.Reason {
	case model.ReasonMoveRefused, model.ReasonMoveFailed, model.ReasonRollBackFailed:
		s.add(ruleRequestFailed, of(v), fmt.Sprintf("the last request was not carried out (%s): %s", progress.Reason, progress.Message),
			"request it again when the reason has ended", progress.LastTransitionTime)
	}
}

// degradedVolume finds by which rule a volume is degraded.
func (s *survey) degradedVolume(v *model.Volume, c model.Condition) {
	look, since := "the message names the remedy", c.LastTransitionTime
	unusable := func(remedy string) {
		details := []detail{from(s.poolAtFault(v))}
		if conditionOf(v, model.ConditionReady).Status == model.ConditionTrue { // its owner still serves it
			details = append(details, asOnly(Warning))
		}
		s.add(ruleVolumeUnusable, of(v), fmt.Sprintf("its data is not usable (%s): %s", c.Reason, c.Message), remedy, since, details...)
	}
	switch c.Reason {
	case model.ReasonMediumFailed:
		unusable("the message names the remedy; `sluicectl volume move` opens the data again")
	case model.ReasonMediumStuck:
		s.add(ruleVolumeStuck, of(v), c.Message, "look at the disk, the file system or the Ceph pool below it; hosts continue when it does", since)
	case model.ReasonMediumErrors:
		s.add(ruleVolumeErrors, of(v), c.Message, "look at the kernel log of the owner's node, and at the disk, the file system or the Ceph pool below the volume",
			since)
	case model.ReasonImageMissing, model.ReasonPoolNotIdentified, model.ReasonOpenFailed:
		unusable(look)
	case model.ReasonMediumMisplaced:
		s.add(ruleVolumeMisplaced, of(v), "its name no longer leads to the data that is served: "+c.Message,
			"rename the former file back, or restore the mount, before the volume moves", since)
	case model.ReasonTakenOut:
		s.add(ruleDeviceTakenOut, of(v), c.Message, look, since, from(Ref{model.KindStoragePool, v.Spec.Pool}))
	case model.ReasonNotApplied:
		s.add(ruleVolumeNotApplied, of(v), "is refused: "+c.Message, look, since)
	case model.ReasonNoStream:
		s.add(ruleVolumeNoStream, of(v), cmp.Or(c.Message, "its owner has no stream"), "look at the network between the owner's node and the "+
			"control plane", since, from(s.ownerOf(v)))
	default:
		rule := ruleVolumeDegraded
		if v.Status.CapacityBytes == 0 {
			rule = ruleVolumeNotMade
		}
		s.add(rule, of(v), fmt.Sprintf("is degraded (%s): %s", c.Reason, c.Message), look, since, from(s.poolAtFault(v)))
	}
}

// ownerless finds a volume that no gateway serves, although hosts are to use it.
func (s *survey) ownerless(v *model.Volume) {
	ready := conditionOf(v, model.ConditionReady)
	if !s.wanted(v) || v.Status.CapacityBytes == 0 || s.has(of(v), Critical) {
		return
	}
	orphaned := v.Status.Ownership.State == model.Orphaned
	late := s.system.Time.Sub(ready.LastTransitionTime) > takeoverLimit
	switch {
	case ready.Reason == model.ReasonTakeoverPending && !late: // another gateway is expected to take it over
		return
	case orphaned:
	case ready.Status != model.ConditionFalse:
		return
	case ready.Reason == model.ReasonNoGateway, ready.Reason == model.ReasonOwnerDead, ready.Reason == model.ReasonOwnerNotServing:
	case !late: // another gateway may be taking it over
		return
	}
	cause := "has no owner: hosts cannot use it"
	if ready.Status == model.ConditionFalse && ready.Message != "" {
		cause += " (" + ready.Message + ")"
	}
	root := s.poolAtFault(v)
	if ready.Reason == model.ReasonOwnerNotServing {
		root = s.ownerOf(v)
	}
	s.add(ruleVolumeWithoutOwner, of(v), cause, "bring back a gateway that reaches pool "+v.Spec.Pool+"; `sluicectl gateway list`",
		ready.LastTransitionTime, from(root))
}

// ownerOf returns the gateway that owns a volume; zero: none.
func (s *survey) ownerOf(v *model.Volume) Ref {
	if g := s.GatewayByNumber(v.Status.Ownership.Owner.Number); g != nil {
		return of(g)
	}
	return Ref{}
}

// poolAtFault returns the pool of a volume if the pool has a fault that makes its volumes unusable; zero: it has none.
func (s *survey) poolAtFault(v *model.Volume) Ref {
	if ref := (Ref{model.KindStoragePool, v.Spec.Pool}); s.has(ref, Critical) {
		return ref
	}
	return Ref{}
}

// held finds operations that wait for a confirmation after a restore.
func (s *survey) held(object model.Object, operations []string) {
	if len(operations) > 0 {
		s.add(ruleHeld, of(object), "was restored from a backup, and waits for a confirmation of: "+strings.Join(operations, ", "),
			"`sluicectl restore confirm` or `discard`; `sluicectl restore list` shows all", time.Time{})
	}
}

// deletion finds an object whose deletion waits.
func (s *survey) deletion(object model.Object) {
	at := object.Metadata().DeleteTime
	if at == nil || s.system.Time.Sub(*at) < deletionLimit {
		return
	}
	cause := "its deletion waits"
	for _, kind := range []string{model.ConditionProgressing, model.ConditionReady} {
		if c := conditionOf(object, kind); c.Message != "" {
			cause += ": " + c.Message
			break
		}
	}
	s.add(ruleDeletionWaits, of(object), cause, "`sluicectl "+strings.ToLower(string(object.Kind()))+" describe "+object.Metadata().Name+
		"` shows what it waits for", *at)
}

func (s *survey) snapshot(snapshot *model.Snapshot) {
	ready := conditionOf(snapshot, model.ConditionReady)
	if ready.Reason == model.ReasonJobFailed || ready.Reason == model.ReasonJobUnsupported {
		s.add(ruleSnapshotFailed, of(snapshot), fmt.Sprintf("failed (%s): %s", ready.Reason, ready.Message),
			"correct the cause; if the pool does not support snapshots, delete the Snapshot", ready.LastTransitionTime)
	}
	s.held(snapshot, snapshot.Status.Held)
	s.deletion(snapshot)
}
