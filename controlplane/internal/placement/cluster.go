package placement

// Cluster is the input of Plan. The order of its lists does not matter. Plan does not modify it.
type Cluster struct {
	Fabrics  []Fabric
	Gateways []Gateway
	Volumes  []Volume
	Targets  []Target
	Hosts    []Host
	Policy   Policy
}

// Policy has the parameters; the zero value means the defaults below.
type Policy struct {
	// MaxMoves bounds the rebalancing moves of one plan: path replacements with the changes of owner that follow from them, and
	// optional changes of owner. If the first replacement alone causes more than that, it is made alone. 0 means DefaultMaxMoves,
	// a negative number none.
	MaxMoves int
	// HysteresisPermille is the minimum gain of a move, in thousandths of a gateway's fair share of load, 1…1000. 0 means
	// DefaultHysteresisPermille.
	HysteresisPermille int32
	// HopPermille is the load above its fair share, in thousandths, that a gateway may carry to be one link nearer to the hosts,
	// 1…1000. 0 means DefaultHopPermille.
	HopPermille int32
	// VolumeLoad is added to the observed load of an exported volume, in commands per second, so that idle volumes are
	// distributed, too. 0 means DefaultVolumeLoad.
	VolumeLoad uint64
}

// Defaults of the policy.
const (
	DefaultMaxMoves           = 64
	DefaultHysteresisPermille = 100
	DefaultHopPermille        = 100
	DefaultVolumeLoad         = 100
)

// Health determines what a gateway may be assigned.
type Health uint8

// The states of health.
const (
	// Usable gateways take paths and volumes.
	Usable Health = iota
	// Cordoned gateways keep their paths and volumes and receive no new ones.
	Cordoned
	// Draining gateways serve until others have taken over all their paths and volumes.
	Draining
	// Dead gateways serve nothing.
	Dead
)

// Gateway is a gateway to which paths and volumes are assigned.
type Gateway struct {
	// Number of the gateway, 1…65535.
	Number uint32
	Name   string
	Pool   string
	Node   string
	Health Health
	// Weight is the share of load relative to other gateways of the pool, 1…1000.
	Weight int32
	// OtherLoad is the gateway's load other than commands of volumes that it owns (forwarding, discovery, other processes on its
	// node), in commands per second.
	OtherLoad uint64
	Portals   []Portal
}

// Portal is an address of a gateway on one fabric.
type Portal struct {
	// Address that hosts are given, host:port.
	Address string
	// PortalGroupTag of iSCSI, 1…65535.
	PortalGroupTag uint32
	Fabric         string
	// Switch of the fabric; empty: not known.
	Switch string
}

// Fabric is a network that fails independently.
type Fabric struct {
	Name     string
	Switches []string
	Links    []Link
}

// Link connects two switches of a fabric in both directions.
type Link struct {
	A, B string
	// Cost of a path over it, 1…1000.
	Cost int32
}

// PoolKind is the kind of a storage pool.
type PoolKind uint8

// The kinds of storage pools.
const (
	// UnknownPool is a pool that was not found.
	UnknownPool PoolKind = iota
	// LocalPool is storage of one node: only gateways of that node can own its volumes.
	LocalPool
	// RBDPool is storage that every gateway reaches.
	RBDPool
)

// Volume is owned by one gateway at a time.
type Volume struct {
	Name     string
	PoolKind PoolKind
	// Node of a local pool.
	Node string
	// Owner is the number of the present owner, or of the next owner during a move; 0: none.
	Owner uint32
	// Load that was observed, in commands per second.
	Load uint64
}

// Target is exported by the gateways of its path set.
type Target struct {
	Name string
	// GatewayPool whose gateways may export it.
	GatewayPool string
	// Paths is the wanted number of gateways in the path set, 1…32.
	Paths int32
	// PathSet has the numbers of the gateways that export it at present.
	PathSet []uint32
	// Volumes behind its LUNs, by name.
	Volumes []string
	// Hosts that may log in, by name.
	Hosts []string
}

// Host logs in to targets.
type Host struct {
	Name string
	// Switches to which it is attached, at most one for each fabric; none: unknown.
	Switches []Attachment
}

// Attachment is a place on a fabric.
type Attachment struct {
	Fabric string
	// Switch of the fabric; empty: not known.
	Switch string
}
