package controller

import (
	"hash/fnv"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// lowNumbers are tried first: they fit peripheral device addressing (SAM-5 §4.7.7.2), which every host speaks, and the limits
	// that hosts set themselves. Beyond them numbers go on upwards, from 256 in flat space addressing.
	lowNumbers = 64
	allNumbers = 16384
	// numbersTried bounds how many numbers in quarantine are tried.
	numbersTried = 1024
)

// number for a volume in a target. It begins where the volume's uid says: a volume that returns to a target has its number back,
// and two volumes seldom follow each other under one number, which a host might still have a device for.
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
	return 0 // refused by the control plane, which says why
}

// numberRefused says that the control plane refuses a number, because it was another volume's not long ago.
func numberRefused(err error) bool { return refusedField(err, "spec.luns[", "].id") }
