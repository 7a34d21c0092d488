package model

import (
	"fmt"
	"strings"
	"time"
)

// HeldReason is the condition reason of an object whose pending operations wait for an administrator.
const HeldReason = "HeldAfterRestore"

// Pending describes, in plain words, the requested operations that will change or delete data.
func (v *Volume) Pending() []string {
	var all []string
	have, want := v.Status.CapacityBytes, v.Spec.SizeBytes
	if v.Meta.Deleting() {
		all = append(all, fmt.Sprintf("deletion (reclaim policy %s)", v.Spec.ReclaimPolicy))
	}
	if r := v.Status.RollBack; r != nil {
		all = append(all, "rollback to the snapshot with uid "+r.Snapshot)
	}
	switch source := v.Spec.Source; {
	case have != 0:
	case source.Snapshot != "":
		all = append(all, "copy of snapshot "+source.Snapshot)
	case source.Volume != "":
		all = append(all, "copy of volume "+source.Volume)
	case source.Image != "":
		all = append(all, "adoption of image "+source.Image)
	}
	if have != 0 && want > have {
		all = append(all, fmt.Sprintf("resize from %d to %d bytes", have, want))
	}
	switch request, move := v.Status.MoveRequest, v.Status.Move; {
	case request != nil && request.Gateway != 0:
		all = append(all, fmt.Sprintf("move to gateway %d", request.Gateway))
	case request != nil:
		all = append(all, "move to another gateway")
	case move != nil:
		all = append(all, fmt.Sprintf("move to gateway %d", move.To))
	}
	return all
}

// Hold makes pending operations wait until an administrator confirms them, after a restore of the store. A requested move that
// has begun becomes a request again. Hold reports whether any operation is held.
func (v *Volume) Hold(now time.Time) bool {
	v.Status.Held = v.Pending()
	if len(v.Status.Held) == 0 {
		return false
	}
	if is, err := v.Status.Ownership.CancelMove(); err == nil && v.Status.Move != nil {
		v.Status.Ownership = v.Status.Ownership.Ordered(is, now)
		v.Status.MoveRequest, v.Status.Move = &MoveRequest{Gateway: v.Status.Move.To, Since: now}, nil
	}
	return true
}

// Discard drops the held operations: the volume keeps its present size and owner. It reports whether a deletion was among them.
// Errors: PreconditionError if nothing is held, or if the volume waits for its content. A volume without content is useless, and
// a copy that ended after the backup may contain newer data.
func (v *Volume) Discard() (undeleted bool, err error) {
	switch {
	case len(v.Status.Held) == 0:
		return false, NothingHeld()
	case v.Status.CapacityBytes == 0 && v.Spec.Source != (VolumeSource{}):
		return false, Precondition("status.held", "has the content of the volume (%s), which cannot be discarded: confirm it, then delete the "+
			"volume if it is not wanted", strings.Join(v.Status.Held, ", "))
	}
	if v.Status.CapacityBytes > 0 && v.Spec.SizeBytes != v.Status.CapacityBytes {
		v.Spec.SizeBytes = v.Status.CapacityBytes
		v.Meta.Generation++
	}
	undeleted = v.Meta.Deleting()
	v.Meta.DeleteTime, v.Status.RollBack, v.Status.MoveRequest, v.Status.Move, v.Status.Held = nil, nil, nil, nil, nil
	return undeleted, nil
}

// NothingHeld returns the error for an object that has no held operations.
func NothingHeld() error {
	return Precondition("status.held", "is empty: nothing waits for a confirmation")
}

// Discard drops the held operations of a snapshot. It reports whether a deletion was among them.
func (s *Snapshot) Discard() (undeleted bool, err error) {
	if len(s.Status.Held) == 0 {
		return false, NothingHeld()
	}
	undeleted = s.Meta.Deleting()
	s.Meta.DeleteTime, s.Status.Held = nil, nil
	return undeleted, nil
}

// Pending describes the pending deletion of a snapshot.
func (s *Snapshot) Pending() []string {
	if s.Meta.Deleting() {
		return []string{fmt.Sprintf("deletion (reclaim policy %s)", s.Spec.ReclaimPolicy)}
	}
	return nil
}

// Hold makes a pending deletion wait until an administrator confirms it. It reports whether anything is held.
func (s *Snapshot) Hold() bool {
	s.Status.Held = s.Pending()
	return len(s.Status.Held) > 0
}
