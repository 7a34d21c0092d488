package model

import (
	"fmt"
	"strings"
	"time"
)

// HeldReason is the condition reason of an object whose pending operations wait for an administrator.
const HeldReason = "HeldAfterRestore"

// Holder is an object whose pending operations wait for an administrator after a restore of the store.
type Holder interface {
	Object
	// Pending lists the requested operations that are not complete, as an administrator reads them. names has the names of
	// gateways.
	Pending(names GatewayNames) []string
	// Hold makes the pending operations wait until an administrator confirms or discards them. It returns false if there are none.
	Hold(now time.Time, names GatewayNames) bool
	// Held returns the list of held operations, which the caller may change.
	Held() *[]string
	// Discard forgets the held operations, and returns whether a deletion was among them. Errors: PreconditionError.
	Discard() (undeleted bool, err error)
}

// GatewayNames has the names of gateways by number.
type GatewayNames map[uint32]string

// of returns the name of a gateway, or the number of a gateway that was deleted.
func (names GatewayNames) of(number uint32) string {
	if name, known := names[number]; known {
		return name
	}
	return fmt.Sprintf("number %d", number)
}

// Pending implements Holder: the operations change or delete data, or move the volume.
func (v *Volume) Pending(names GatewayNames) []string {
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
		all = append(all, "move to gateway "+names.of(request.Gateway))
	case request != nil:
		all = append(all, "move to another gateway")
	case move != nil:
		all = append(all, "move to gateway "+names.of(move.To))
	}
	return all
}

// Hold implements Holder. A requested move that has begun becomes a request again.
func (v *Volume) Hold(now time.Time, names GatewayNames) bool {
	v.Status.Held = v.Pending(names)
	if len(v.Status.Held) == 0 {
		return false
	}
	if ownership, err := v.Status.Ownership.CancelMove(); err == nil && v.Status.Move != nil {
		v.Status.Ownership = v.Status.Ownership.Ordered(ownership, now)
		v.Status.MoveRequest, v.Status.Move = &MoveRequest{Gateway: v.Status.Move.To, Since: now}, nil
	}
	return true
}

// Held implements Holder.
func (v *Volume) Held() *[]string { return &v.Status.Held }

// Discard implements Holder: the volume keeps its size and its owner. It fails if nothing is held, or if the volume waits for its
// content: a volume without content is of no use, and a copy that was finished after the backup may hold newer data.
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

// Held implements Holder.
func (s *Snapshot) Held() *[]string { return &s.Status.Held }

// Discard implements Holder.
func (s *Snapshot) Discard() (undeleted bool, err error) {
	if len(s.Status.Held) == 0 {
		return false, NothingHeld()
	}
	undeleted = s.Meta.Deleting()
	s.Meta.DeleteTime, s.Status.Held = nil, nil
	return undeleted, nil
}

// Pending implements Holder.
func (s *Snapshot) Pending(GatewayNames) []string {
	if s.Meta.Deleting() {
		return []string{fmt.Sprintf("deletion (reclaim policy %s)", s.Spec.ReclaimPolicy)}
	}
	return nil
}

// Hold implements Holder.
func (s *Snapshot) Hold(_ time.Time, names GatewayNames) bool {
	s.Status.Held = s.Pending(names)
	return len(s.Status.Held) > 0
}
