// Package desiredtest has a small cluster for tests of desired states.
package desiredtest

import (
	"fmt"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// IQN of the target.
const IQN = "iqn.2026-11.dev.sluice:db"

// Cluster has gateways gw-1 … gw-3 on one fabric; target db with LUN 0, volume orders, is exported by the first two.
func Cluster() *objects.Objects {
	o := objects.New()
	o.Put(&model.Fabric{Meta: model.Meta{Name: "red"}})
	for i := uint32(1); i <= 3; i++ {
		o.Put(&model.Gateway{Meta: model.Meta{Name: fmt.Sprintf("gw-%d", i)},
			Spec: model.GatewaySpec{GatewayPool: "default", Node: "node-1", Weight: 100,
				ForwardingAddress: fmt.Sprintf("10.0.9.%d:3261", i),
				Portals: []model.Portal{{Listen: fmt.Sprintf("10.0.0.%d:3260", i),
					Advertised: fmt.Sprintf("192.0.2.%d:3260", i), Fabric: "red"}}},
			Status: model.GatewayStatus{Number: i, Incarnation: "i", Health: model.GatewayReady,
				PortalGroupTags: map[string]uint32{"red": 10 + i}}})
	}
	o.Put(&model.StoragePool{Meta: model.Meta{Name: "nvme", UID: "pool-uid"},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	o.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "host-uid"}, Spec: model.HostSpec{
		Initiators: []string{"iqn.2026-11.example:web"}, MaxSessions: 4,
		Chap: &model.ChapCredentials{Username: "web", Password: model.NewSecret("a secret of web")}}})
	o.Put(Volume(model.Ownership{State: model.Owned, Epoch: 3, Order: 9, Owner: Ref(1)}))
	o.Put(&model.Target{Meta: model.Meta{Name: "db", UID: "target-uid"},
		Spec: model.TargetSpec{IQN: IQN, GatewayPool: "default", Paths: 2, Hosts: []string{"web"},
			Luns: []model.TargetLun{{ID: 0, Volume: "orders"}}},
		Status: model.TargetStatus{PathSet: []uint32{1, 2}, Ports: []model.TargetPort{
			{Gateway: 2, PortalGroupTag: 12, RelativePortID: 2}, {Gateway: 1, PortalGroupTag: 11, RelativePortID: 1},
			{Gateway: 3, PortalGroupTag: 13, RelativePortID: 3}}}})
	return o
}

// Volume is volume orders, with an ownership.
func Volume(o model.Ownership) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: "orders", UID: "volume-uid"},
		Spec:   model.VolumeSpec{Pool: "nvme", SizeBytes: 2 << 20, BlockSize: 512},
		Status: model.VolumeStatus{Ownership: o, CapacityBytes: 1 << 20}}
}

// Ref is the incarnation of a gateway that runs.
func Ref(number uint32) model.GatewayRef { return model.GatewayRef{Number: number, Incarnation: "i"} }

// Apply applies a message to a gateway's state.
func Apply(held desired.State, update *pb.StreamUpdate) {
	if update.GetFull() {
		clear(held)
	}
	for _, object := range update.GetPut() {
		held[desired.Key{Kind: kindOf(object), ID: object.GetId()}] = object
	}
	for _, key := range update.GetRemoved() {
		delete(held, desired.Key{Kind: key.GetKind(), ID: key.GetId()})
	}
}

func kindOf(object *pb.DesiredObject) pb.ObjectKind {
	switch object.GetObject().(type) {
	case *pb.DesiredObject_Settings:
		return pb.ObjectKind_OBJECT_KIND_SETTINGS
	case *pb.DesiredObject_Listener:
		return pb.ObjectKind_OBJECT_KIND_LISTENER
	case *pb.DesiredObject_Peer:
		return pb.ObjectKind_OBJECT_KIND_PEER
	case *pb.DesiredObject_Pool:
		return pb.ObjectKind_OBJECT_KIND_POOL
	case *pb.DesiredObject_Volume:
		return pb.ObjectKind_OBJECT_KIND_VOLUME
	case *pb.DesiredObject_Host:
		return pb.ObjectKind_OBJECT_KIND_HOST
	case *pb.DesiredObject_Target:
		return pb.ObjectKind_OBJECT_KIND_TARGET
	}
	return pb.ObjectKind_OBJECT_KIND_UNSPECIFIED
}
