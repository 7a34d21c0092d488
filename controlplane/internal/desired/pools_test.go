package desired_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// A gateway itself reports that it can open images, so only its GatewayPool decides whether it receives the key of a pool.
func TestAGatewayReceivesTheKeysOfThePoolsOfItsGatewayPoolOnly(t *testing.T) {
	pool := func(listed ...string) *model.StoragePool {
		return &model.StoragePool{Meta: model.Meta{Name: "ceph", UID: "ceph-uid"}, Spec: model.StoragePoolSpec{GatewayPools: listed,
			RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Pool: "rbd", Key: model.NewSecret("k")}}}
	}
	gatewayPool := func(name string) *model.GatewayPool { return &model.GatewayPool{Meta: model.Meta{Name: name}} }
	inCeph := func(o model.Ownership) *model.Volume {
		v := desiredtest.Volume(o)
		v.Spec.Pool = "ceph"
		return v
	}
	with := func(spec model.TargetSpec) *model.Target {
		return &model.Target{Meta: model.Meta{Name: "db", UID: "target-uid"}, Spec: spec}
	}
	exported := model.TargetSpec{IQN: desiredtest.IQN, GatewayPool: "edge", Luns: []model.TargetLun{{ID: 0, Volume: "orders"}}}
	unused := model.TargetSpec{IQN: desiredtest.IQN, GatewayPool: "edge"}
	several := []model.Object{gatewayPool("default"), gatewayPool("edge")}
	cases := map[string]struct {
		objects []model.Object
		// gw-1 and gw-2 are in GatewayPool default, gw-3 is in edge.
		want []string
	}{
		"one gateway pool":           {[]model.Object{pool(), with(unused)}, []string{"gw-1", "gw-2", "gw-3"}},
		"mapped by a target of edge": {append(several, pool(), inCeph(model.Ownership{}), with(exported)), []string{"gw-3"}},
		"mapped by no target":        {append(several, pool(), with(unused)), []string{"gw-1", "gw-2"}},
		"listed":                     {append(several, pool("edge"), with(unused)), []string{"gw-3"}},
		"listed, and mapped by a target of edge": {append(several, pool("default"), inCeph(model.Ownership{}), with(exported)),
			[]string{"gw-1", "gw-2"}},
		"owned by another's gateway still": {append(several, pool("edge"), with(unused),
			inCeph(model.Ownership{State: model.Owned, Epoch: 1, Owner: desiredtest.Ref(2)})), []string{"gw-2", "gw-3"}},
	}
	for name, c := range cases {
		o := desiredtest.Cluster()
		edge := *o.Gateways["gw-3"]
		edge.Spec.GatewayPool = "edge"
		if len(c.objects) > 2 {
			o.Put(&edge)
		}
		for _, object := range c.objects {
			o.Put(object)
		}
		if got := receivers(o); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v receive the key, want %v", name, got, c.want)
		}
	}
}

func receivers(o *objects.Objects) (all []string) {
	for _, name := range []string{"gw-1", "gw-2", "gw-3"} {
		state, _ := desired.Build(o, o.Gateways[name], desired.Process{Incarnation: "i", RBD: true}, desired.Settings{}, desired.Cache{})
		if state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_POOL, ID: "ceph-uid"}] != nil {
			all = append(all, name)
		}
	}
	return all
}
