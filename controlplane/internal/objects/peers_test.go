package objects_test

import (
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// pool has gateways 1…n of one pool; target `db` is exported by 1 and 2.
func pool(n uint32, lost ...uint32) *objects.Objects {
	o := objects.New()
	for number := uint32(1); number <= n; number++ {
		health := model.GatewayReady
		if slices.Contains(lost, number) {
			health = model.GatewayDisconnected
		}
		o.Put(&model.Gateway{Meta: model.Meta{Name: fmt.Sprint("gw-", number)}, Spec: model.GatewaySpec{GatewayPool: "default"},
			Status: model.GatewayStatus{Number: number, Health: health}})
	}
	o.Put(&model.Target{Meta: model.Meta{Name: "db"}, Status: model.TargetStatus{PathSet: []uint32{1, 2}}})
	return o
}

func peersOf(o *objects.Objects, number uint32) []uint32 { return o.PeersOf(o.GatewayByNumber(number)) }

// Otherwise no gateway could report it gone, and its volumes would never get another owner.
func TestAGatewayWithoutAStreamIsLookedForByOthersThanThoseOfItsPathSets(t *testing.T) {
	for _, c := range []struct {
		n      uint32
		lost   []uint32
		of     uint32
		wanted []uint32
	}{
		{4, nil, 1, []uint32{2}},
		{4, nil, 3, nil},
		{4, []uint32{1, 2}, 3, []uint32{1, 2}},
		{4, []uint32{1, 2}, 4, []uint32{1, 2}},
		{5, []uint32{1, 2}, 5, nil}, // two are sufficient
		{5, []uint32{5}, 1, []uint32{2, 5}},
		{3, []uint32{1, 2}, 3, []uint32{1, 2}}, // the only remaining one
		{3, []uint32{1, 2}, 1, []uint32{2, 3}}, // and the gateway that monitors it
		{5, []uint32{5}, 5, []uint32{1, 2}},
		{5, []uint32{3}, 3, []uint32{4, 5}},
	} {
		if got := peersOf(pool(c.n, c.lost...), c.of); !slices.Equal(got, c.wanted) {
			t.Errorf("of %d, %v lost: %d knows %v, wanted %v", c.n, c.lost, c.of, got, c.wanted)
		}
	}
}

func TestOnlyPeersThatMayReachAGatewayMonitorItAndTheirNumberIsLimited(t *testing.T) {
	o := pool(3, 1, 2)
	other := *o.GatewayByNumber(3)
	other.Spec.GatewayPool = "elsewhere"
	o.Put(&other)
	if got := peersOf(o, 3); len(got) > 0 {
		t.Errorf("of another pool: %v", got)
	}
	var lost []uint32
	for number := uint32(1); number < 500; number++ {
		lost = append(lost, number)
	}
	if got := peersOf(pool(500, lost...), 500); len(got) > 100 {
		t.Errorf("one gateway looks for %d", len(got))
	}
}
