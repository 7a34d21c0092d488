package desired

import (
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (m *maker) volume(v *model.Volume, exported bool) {
	uid := v.Meta.UID
	pool := m.objects.StoragePools[v.Spec.Pool]
	if _, done := m.made.volumes[uid]; done {
		return
	}
	if was := m.before.volumes[uid]; was.volume == v && was.pool == pool {
		was.exported = exported
		m.made.volumes[uid] = was
		if was.object != nil {
			m.state[Key{pb.ObjectKind_OBJECT_KIND_VOLUME, uid}] = was.object
		}
		return
	}
	if pool == nil || v.Status.CapacityBytes == 0 { // no message yet, but changes of the volume concern the gateway
		m.made.volumes[uid] = volumeMade{v, pool, nil, exported}
		return
	}
	role, owner, transitioning := RoleOf(v, m.self)
	qos := v.Spec.QoS.Resolved()
	object := &pb.DesiredObject{Object: &pb.DesiredObject_Volume{
		Volume: &pb.DesiredVolume{
			Uid: uid, Name: v.Meta.Name, Epoch: v.Status.Ownership.Epoch, Order: v.Status.Ownership.Order,
			Role: role, Owner: owner, Transitioning: transitioning,
			PoolUid: pool.Meta.UID, Location: model.VolumeLocation(v),
			FencedClients: strings.Fields(v.Status.Ownership.FencedClients),
			SizeBytes:     v.Status.CapacityBytes, BlockSize: v.Spec.BlockSize, WriteCache: v.Spec.WriteCache,
			Naa: v.Status.Identity.NAA, SerialNumber: v.Status.Identity.SerialNumber,
			Qos: &pb.DesiredQos{Iops: qos.IOPS, IopsBurst: qos.IOPSBurst, BytesPerSecond: qos.BytesPerSecond,
				BytesBurst: qos.BytesBurst},
		}}}
	m.put(pb.ObjectKind_OBJECT_KIND_VOLUME, uid, object)
	m.made.volumes[uid] = volumeMade{v, pool, object, exported}
}

// RoleOf returns the role of a gateway for a volume, the number of the gateway to which it forwards (0: none), and whether a host
// should wait for an owner.
func RoleOf(v *model.Volume, self model.GatewayRef) (role pb.VolumeRole, owner uint32, transitioning bool) {
	o := v.Status.Ownership
	switch o.State {
	case model.Opening:
		if o.Owner == self {
			return pb.VolumeRole_VOLUME_ROLE_OWNER, o.Owner.Number, false
		}
		// The owner serves nothing yet: it would refuse forwarded commands.
		return pb.VolumeRole_VOLUME_ROLE_FORWARDER, 0, true
	case model.Owned:
		if o.Owner == self {
			return pb.VolumeRole_VOLUME_ROLE_OWNER, o.Owner.Number, false
		}
		if v.Stranded() || v.TakeoverPending() {
			return pb.VolumeRole_VOLUME_ROLE_FORWARDER, 0, v.TakeoverPending()
		}
		return pb.VolumeRole_VOLUME_ROLE_FORWARDER, o.Owner.Number, false
	case model.Moving:
		if o.Owner == self {
			return pb.VolumeRole_VOLUME_ROLE_RELEASING, o.Owner.Number, true
		}
	case model.Acquiring:
		if o.Next == self {
			return pb.VolumeRole_VOLUME_ROLE_ACQUIRING, 0, true
		}
		if o.Owner == self {
			// It owns the volume until the candidate asks it for the lock (R2), because the leader's verdict may be wrong.
			return pb.VolumeRole_VOLUME_ROLE_OWNER, o.Owner.Number, false
		}
	case model.Orphaned, model.Unowned:
		return pb.VolumeRole_VOLUME_ROLE_FORWARDER, 0, v.TakeoverPossible()
	case model.Fencing:
	}
	return pb.VolumeRole_VOLUME_ROLE_FORWARDER, 0, true
}
