package dispatch

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Settings hold for the whole cluster.
type Settings struct {
	ClusterID string
	// SystemID is what gateways keep, and refuse another control plane by.
	SystemID string
	// Keys of the forwarding port that all gateways share, newest first: only for gateways without pairwise keys.
	Keys []model.ForwardingKey
	// Roots of the keys of pairs of gateways, newest first. They never leave the control plane.
	Roots []model.ForwardingKey
	OUI   uint32
}

// objectKey is ObjectKey as a map's key.
type objectKey struct {
	kind pb.ObjectKind
	id   string
}

// desiredState is what a gateway shall be.
type desiredState map[objectKey]*pb.DesiredObject

// volumeMade is what a gateway was told of a volume, nil where it can't be told of it yet, and what that was made of: objects of
// the view are replaced, never changed.
type volumeMade struct {
	volume *model.Volume
	pool   *model.StoragePool
	told   *pb.DesiredObject
	// exported: a target shows it through this gateway, whoever owns it.
	exported bool
}

// targetMade is what it was told of a target, by the layout that this was made of.
type targetMade struct {
	layout uint64
	told   *pb.DesiredObject
}

// makings are what is kept for the next time, volumes by uid and targets by IQN: there are many of the ones, and much hangs on
// the others.
type makings struct {
	volumes map[string]volumeMade
	targets map[string]targetMade
}

// mostOthers is about how many objects there are besides volumes.
const mostOthers = 32

// process is a gateway's, as its hello told.
type process struct {
	incarnation string
	// rbd says that it can open images of Ceph.
	rbd bool
	// pairwise says that it knows a key for each peer.
	pairwise bool
}

// desired makes it for a gateway that runs as this process. It is pure: the same objects give the same state. What is as it was
// is taken over from `made`, where the result is kept for the next time.
func desired(o *view.Objects, gateway *model.Gateway, runs process, settings Settings, made makings) (desiredState, makings) {
	m := &maker{objects: o, gateway: gateway, state: make(desiredState, len(made.volumes)+mostOthers),
		before: made, made: makings{make(map[string]volumeMade, len(made.volumes)), map[string]targetMade{}}, rbd: runs.rbd,
		pairwise: runs.pairwise, roots: settings.Roots,
		self: model.GatewayRef{Number: gateway.Status.Number, Incarnation: runs.incarnation}}
	m.settings(settings)
	m.listeners()
	m.targets()
	for _, number := range o.PeersOf(gateway) {
		m.peer(number)
	}
	m.ownVolumes()
	m.pools()
	return m.state, m.made
}

type maker struct {
	objects *view.Objects
	gateway *model.Gateway
	self    model.GatewayRef
	rbd     bool
	// pairwise and roots are of the keys with its peers.
	pairwise bool
	roots    []model.ForwardingKey
	state    desiredState
	// before and made: what was told the last time, and this time.
	before, made makings
}

func (m *maker) put(kind pb.ObjectKind, id string, object *pb.DesiredObject) {
	object.Id = id
	// Deterministic within a build of this program, which is all that a name needs.
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(object)
	if err != nil {
		panic("dispatch: a message of our own can't be encoded: " + err.Error())
	}
	sum := sha256.Sum256(content)
	object.Digest = sum[:]
	m.state[objectKey{kind, id}] = object
}

func (m *maker) settings(s Settings) {
	message := &pb.DesiredSettings{ClusterId: s.ClusterID, SystemId: s.SystemID, Oui: s.OUI, Gateway: m.gateway.Meta.Name,
		Number: m.self.Number, ForwardingListen: model.CanonicalAddress(m.gateway.Spec.ForwardingAddress)}
	if !m.pairwise || sharesKeys(m.objects) {
		for _, key := range s.Keys {
			message.ForwardingKeys = append(message.ForwardingKeys, keyMessage(key))
		}
	}
	m.put(pb.ObjectKind_OBJECT_KIND_SETTINGS, "",
		&pb.DesiredObject{Object: &pb.DesiredObject_Settings{Settings: message}})
}

func (m *maker) listeners() {
	for i, portal := range m.gateway.Spec.Portals {
		portal = portal.Canonical()
		m.put(pb.ObjectKind_OBJECT_KIND_LISTENER, strconv.Itoa(i+1), &pb.DesiredObject{
			Object: &pb.DesiredObject_Listener{Listener: &pb.DesiredListener{
				PortalGroupTag: m.gateway.Status.PortalGroupTags[portal.Fabric],
				Listen:         portal.Listen, Advertised: portal.Advertised, Fabric: portal.Fabric,
			}}})
	}
}

// targets are those whose path set the gateway is in, with all that they need.
func (m *maker) targets() {
	for _, target := range m.objects.Targets {
		if target.Meta.Deleting() || !slices.Contains(target.Status.PathSet, m.self.Number) {
			continue
		}
		m.target(target)
		for _, lun := range target.Spec.Luns {
			if volume := m.objects.Volumes[lun.Volume]; volume != nil {
				m.volume(volume, true)
			}
		}
		for _, name := range target.Spec.Hosts {
			if host := m.objects.Hosts[name]; host != nil && !host.Meta.Deleting() {
				m.host(host)
			}
		}
	}
}

func (m *maker) target(t *model.Target) {
	key := objectKey{pb.ObjectKind_OBJECT_KIND_TARGET, t.Spec.IQN}
	was, known := m.before.targets[key.id]
	if !known || was.layout != m.objects.Layout() {
		m.makeTarget(t)
		was = targetMade{m.objects.Layout(), m.state[key]}
	}
	m.state[key], m.made.targets[key.id] = was.told, was
}

func (m *maker) makeTarget(t *model.Target) {
	message := &pb.DesiredTarget{Iqn: t.Spec.IQN, Access: m.access(t)}
	for _, lun := range t.Spec.Luns {
		if volume := m.objects.Volumes[lun.Volume]; volume != nil && shown(volume) {
			message.Luns = append(message.Luns,
				&pb.DesiredLun{Id: uint32(lun.ID), VolumeUid: volume.Meta.UID, ReadOnly: lun.ReadOnly})
		}
	}
	for _, port := range t.Status.Ports {
		if slices.Contains(t.Status.PathSet, port.Gateway) {
			message.Ports = append(message.Ports, &pb.DesiredPort{Gateway: port.Gateway,
				PortalGroupTag: port.PortalGroupTag, RelativeTargetPortId: port.RelativePortID})
		}
	}
	slices.SortFunc(message.Luns, func(a, b *pb.DesiredLun) int { return cmp.Compare(a.Id, b.Id) })
	slices.SortFunc(message.Ports, func(a, b *pb.DesiredPort) int {
		return cmp.Or(cmp.Compare(a.Gateway, b.Gateway), cmp.Compare(a.PortalGroupTag, b.PortalGroupTag))
	})
	m.put(pb.ObjectKind_OBJECT_KIND_TARGET, t.Spec.IQN,
		&pb.DesiredObject{Object: &pb.DesiredObject_Target{Target: message}})
}

// shown says whether hosts may know of a volume: one that was never made yet would be a LUN of no size.
func shown(v *model.Volume) bool { return v.Status.CapacityBytes > 0 }

func (m *maker) peer(number uint32) {
	peer := m.objects.GatewayByNumber(number)
	if peer == nil || peer.Status.Incarnation == "" {
		return
	}
	message := &pb.DesiredPeer{
		Number: number, Incarnation: peer.Status.Incarnation, ForwardingAddress: model.CanonicalAddress(peer.Spec.ForwardingAddress),
		Fenced: peer.Status.Health == model.GatewayDead, Node: peer.Spec.Node,
	}
	if m.pairwise {
		m.pairKeys(message, peer.Ref())
	}
	m.put(pb.ObjectKind_OBJECT_KIND_PEER, strconv.FormatUint(uint64(number), 10),
		&pb.DesiredObject{Object: &pb.DesiredObject_Peer{Peer: message}})
}

func (m *maker) host(h *model.Host) {
	message := &pb.DesiredHost{Uid: h.Meta.UID, Initiators: h.Spec.Initiators, MaxSessions: h.Spec.MaxSessions}
	if h.Spec.Chap != nil {
		for _, initiator := range h.Spec.Initiators {
			message.ChapUsernames = append(message.ChapUsernames, h.Spec.ChapUsername(initiator))
		}
		// Gateways of release 880afa1 read this name only, and admit everybody if it is empty.
		message.Chap = &pb.DesiredChap{Username: message.ChapUsernames[0], Password: h.Spec.Chap.Password.Reveal()}
	}
	if h.Spec.MutualChap != nil {
		message.MutualChap = &pb.DesiredChap{Username: h.Spec.MutualChap.Username,
			Password: h.Spec.MutualChap.Password.Reveal()}
	}
	m.put(pb.ObjectKind_OBJECT_KIND_HOST, h.Meta.UID, &pb.DesiredObject{Object: &pb.DesiredObject_Host{Host: message}})
}

// ownVolumes are those that the gateway has to do with though no target shows them through it (any more).
func (m *maker) ownVolumes() {
	for _, volume := range m.objects.Volumes {
		o := volume.Status.Ownership
		if o.Owner == m.self || o.Next == m.self {
			m.volume(volume, false)
		}
	}
}

func (m *maker) pools() {
	owned := map[*model.StoragePool]bool{}
	for _, made := range m.made.volumes {
		o := made.volume.Status.Ownership
		if made.told != nil && (o.Owner.Number == m.self.Number || o.Next.Number == m.self.Number) {
			owned[made.pool] = true
		}
	}
	for _, pool := range m.objects.StoragePools {
		// A gateway may be asked for jobs in any pool that its GatewayPool serves, before it exports a volume of the pool; and it is
		// given no volume in Ceph before its client is recorded. What it owns it keeps until another gateway owns that.
		if owned[pool] || m.objects.Serves(m.gateway, pool) && (pool.Spec.Local != nil || m.rbd) {
			m.pool(pool)
		}
	}
}

func (m *maker) pool(pool *model.StoragePool) {
	message := &pb.DesiredPool{Uid: pool.Meta.UID, NearlyFull: pool.NearlyFull()}
	switch {
	case pool.Spec.Local != nil:
		message.Kind = &pb.DesiredPool_Local{Local: &pb.DesiredLocalPool{
			Node: pool.Spec.Local.Node, Directory: pool.Spec.Local.Directory, Devices: pool.Spec.Local.Devices}}
		if pool.IsDirectory() {
			message.Identity = m.poolIdentity(pool)
		}
	case pool.Spec.RBD != nil:
		rbd := pool.Spec.RBD
		message.Kind = &pb.DesiredPool_Rbd{Rbd: &pb.DesiredRbdPool{Monitors: rbd.Monitors, User: rbd.User,
			Key: rbd.Key.Reveal(), Pool: rbd.Pool, RadosNamespace: rbd.RadosNamespace, DataPool: rbd.DataPool}}
	}
	m.put(pb.ObjectKind_OBJECT_KIND_POOL, pool.Meta.UID, &pb.DesiredObject{Object: &pb.DesiredObject_Pool{Pool: message}})
}
