package controller

import (
	"hash/fnv"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// lowNumbers are tried first: they fit peripheral device addressing (SAM-5 §4.7.7.2), which every host supports, and the
	// limits of hosts. Higher numbers follow in ascending order, from 256 in flat space addressing.
	lowNumbers = 64
	allNumbers = 16384
	// numbersTried bounds the numbers in quarantine that are tried.
	numbersTried = 1024
)

// number returns a LUN number for a volume in a target. It starts at a value derived from the volume's uid. So a volume that
// returns to a target gets its number back, and two volumes rarely use the same number in succession, for which a host might
// still have a device.
func number(volume *pb.Volume, target *pb.Target, refused int) int32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(volume.GetMeta().GetUid()))
	begin := int32(sum.Sum32() % lowNumbers)
	taken := map[int32]bool{}
	for _, lun := range target.GetSpec().GetLuns() {
		taken[lun.GetId()] = true
	}
	for i := range int32(allNumbers) {
		id := i
		if i < lowNumbers {
			id = (begin + i) % lowNumbers
		}
		if taken[id] {
			continue
		}
		if refused == 0 {
			return id
		}
		refused--
	}
	return 0 // the control plane refuses it, with the reason
}

// numberRefused reports whether the control plane refuses a number because another volume had it recently.
func numberRefused(err error) bool { return refusedField(err, "spec.luns[", "].id") }
