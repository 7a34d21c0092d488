package decide_test

import (
	"math"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestALostEpochIsAdoptedOnlyFromAPlausibleReport(t *testing.T) {
	owned := model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	for name, c := range map[string]struct {
		ownership      model.Ownership
		rbd            bool
		reported, want uint64
	}{
		"an epoch of a node without the data":        {owned, false, 9, 3},
		"an epoch that no order can have":            {owned, true, math.MaxUint64, 3},
		"an epoch above the present time":            {owned, true, uint64(start.UnixMilli()) + 1, 3},
		"an epoch in which the pool was served":      {owned, true, 9, 9},
		"an epoch at the floor of a restore":         {owned.Restored(1000), true, 1000, 1000},
		"an epoch at a floor above the present time": {owned.Restored(1 << 60), true, 1 << 60, 1 << 60},
	} {
		v := known(2)
		exported(v, c.ownership, c.rbd)
		observed(v, ref(2), model.VolumeServing, c.reported, 20)
		if got, _ := next(t, v, start); got.State != model.Owned || got.Epoch != c.want {
			t.Errorf("%s: %s in epoch %d, wanted %d", name, got.State, got.Epoch, c.want)
		}
	}
}

func TestAnImpossibleOrderIsNotAdopted(t *testing.T) {
	for reported, want := range map[uint64]uint64{20: 20, math.MaxUint64: 7} {
		v := known(2)
		exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}, true)
		observed(v, ref(2), model.VolumeFenced, 3, reported)
		if got, _ := next(t, v, start); got.Order != want {
			t.Errorf("after a report of order %d: the volume has %d, wanted %d", reported, got.Order, want)
		}
	}
}
