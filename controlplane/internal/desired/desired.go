package desired

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Settings apply to the whole cluster.
type Settings struct {
	ClusterID string
	// SystemID is stored by gateways, which refuse a control plane with another one.
	SystemID string
	// Keys of the forwarding port that all gateways share, newest first: only for gateways without pairwise keys.
	Keys []model.ForwardingKey
	// Roots of the keys of pairs of gateways, newest first. They never leave the control plane.
	Roots []model.ForwardingKey
	OUI   uint32
}

// Key identifies an object of a state, as ObjectKey does.
type Key struct {
	Kind pb.ObjectKind
	ID   string
}

// State is the desired state of one gateway: its objects, each with its digest.
type State map[Key]*pb.DesiredObject

// volumeMade is the message about a volume, nil where there can be none yet, and the objects that it was built from: objects in memory
// are replaced, never changed.
type volumeMade struct {
	volume *model.Volume
	pool   *model.StoragePool
	object *pb.DesiredObject
	// exported: a target shows it through this gateway, which need not be its owner.
	exported bool
}

// targetMade is the message about a target, and the layout that it was built from.
type targetMade struct {
	layout uint64
	object *pb.DesiredObject
}

// Cache holds messages for the next Build, volumes by uid and targets by IQN: there are many volumes, and a target's message is costly.
// The zero value is an empty cache.
type Cache struct {
	volumes map[string]volumeMade
	targets map[string]targetMade
}

// mostOthers is roughly the number of objects other than volumes.
const mostOthers = 32

// Process is a gateway's process as described by its hello.
type Process struct {
	Incarnation string
	// RBD: the process can open images of Ceph.
	RBD bool
	// Pairwise: the process uses a separate key for each peer.
	Pairwise bool
}

// Build returns the desired state of a gateway that runs as this process, and the cache for the next call. It is a pure function: the
// same objects give the same state. It reuses messages of the cache whose objects are unchanged.
func Build(o *objects.Objects, gateway *model.Gateway, runs Process, settings Settings, made Cache) (State, Cache) {
	m := &maker{objects: o, gateway: gateway, state: make(State, len(made.volumes)+mostOthers),
		before: made, made: Cache{make(map[string]volumeMade, len(made.volumes)), map[string]targetMade{}}, rbd: runs.RBD,
		pairwise: runs.Pairwise, roots: settings.Roots,
		self: model.GatewayRef{Number: gateway.Status.Number, Incarnation: runs.Incarnation}}
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

// VolumeNames returns the names of the volumes that a state concerns, including those without a message yet.
func (c Cache) VolumeNames() map[string]bool {
	names := make(map[string]bool, len(c.volumes))
	for _, made := range c.volumes {
		names[made.volume.Meta.Name] = true
	}
	return names
}

type maker struct {
	objects *objects.Objects
	gateway *model.Gateway
	self    model.GatewayRef
	rbd     bool
	// pairwise and roots determine the keys with its peers.
	pairwise bool
	roots    []model.ForwardingKey
	state    State
	// before and made are the caches of the previous state and of this one.
	before, made Cache
}

func (m *maker) put(kind pb.ObjectKind, id string, object *pb.DesiredObject) {
	object.Id = id
	// It is deterministic within a build of this program, which is sufficient for a digest.
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(object)
	if err != nil {
		panic("desired: a message of our own can't be encoded: " + err.Error())
	}
	sum := sha256.Sum256(content)
	object.Digest = sum[:]
	m.state[Key{kind, id}] = object
}

func (m *maker) settings(s Settings) {
	message := &pb.DesiredSettings{ClusterId: s.ClusterID, SystemId: s.SystemID, Oui: s.OUI, Gateway: m.gateway.Meta.Name,
		Number: m.self.Number, ForwardingListen: model.CanonicalAddress(m.gateway.Spec.ForwardingAddress)}
	if pool := m.objects.GatewayPools[m.gateway.Spec.GatewayPool]; pool != nil {
		message.MaxSessions = uint32(pool.Spec.MaxSessionsPerGateway)
	}
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

// targets adds the targets whose path set contains the gateway, with all that they need.
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
	key := Key{pb.ObjectKind_OBJECT_KIND_TARGET, t.Spec.IQN}
	was, known := m.before.targets[key.ID]
	if !known || was.layout != m.objects.Layout() {
		m.makeTarget(t)
		was = targetMade{m.objects.Layout(), m.state[key]}
	}
	m.state[key], m.made.targets[key.ID] = was.object, was
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

// shown reports whether hosts may see a volume: one without an image would be a LUN of no size.
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
		// Gateways of release 880afa1 read only this name, and admit every host if it is empty.
		message.Chap = &pb.DesiredChap{Username: message.ChapUsernames[0], Password: h.Spec.Chap.Password.Reveal()}
	}
	if h.Spec.MutualChap != nil {
		message.MutualChap = &pb.DesiredChap{Username: h.Spec.MutualChap.Username,
			Password: h.Spec.MutualChap.Password.Reveal()}
	}
	m.put(pb.ObjectKind_OBJECT_KIND_HOST, h.Meta.UID, &pb.DesiredObject{Object: &pb.DesiredObject_Host{Host: message}})
}

// ownVolumes adds the volumes of which the gateway is the owner or next owner although no target exports them through it (any
// more).
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
		if made.object != nil && (o.Owner.Number == m.self.Number || o.Next.Number == m.self.Number) {
			owned[made.pool] = true
		}
	}
	for _, pool := range m.objects.StoragePools {
		// A gateway may get jobs in any pool that its GatewayPool serves before it exports a volume of the pool. It gets no
		// volume in Ceph before its client is recorded. A volume that it owns stays in its state until another gateway owns it.
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
		if pool.IsDirectory() { // devices carry labels of their own
			message.Identity = m.poolIdentity(pool)
		}
	case pool.Spec.RBD != nil:
		rbd := pool.Spec.RBD
		message.Kind = &pb.DesiredPool_Rbd{Rbd: &pb.DesiredRbdPool{Monitors: rbd.Monitors, User: rbd.User,
			Key: rbd.Key.Reveal(), Pool: rbd.Pool, RadosNamespace: rbd.RadosNamespace, DataPool: rbd.DataPool}}
		message.Identity = m.poolIdentity(pool)
	}
	m.put(pb.ObjectKind_OBJECT_KIND_POOL, pool.Meta.UID, &pb.DesiredObject{Object: &pb.DesiredObject_Pool{Pool: message}})
}
