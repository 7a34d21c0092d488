package placement

// Cluster is all that Plan goes by. Order never matters; Plan doesn't change what it is given.
type Cluster struct {
	Fabrics  []Fabric
	Gateways []Gateway
	Volumes  []Volume
	Targets  []Target
	Hosts    []Host
	Policy   Policy
}

// Policy holds the knobs; the zero value means the defaults below.
type Policy struct {
	// MaxMoves bounds the rebalancing moves of one plan: path replacements, with the changes of owner
	// that follow from them, and changes of owner that nothing forces. Where the first one has more to
	// follow than that, it is made alone. 0 means DefaultMaxMoves, a negative number none.
	MaxMoves int
	// HysteresisPermille is what a move has to gain, in thousandths of a gateway's fair share of load,
	// 1…1000. 0 means DefaultHysteresisPermille.
	HysteresisPermille int32
	// HopPermille is how much load above its fair share a gateway may carry, in thousandths, to be one
	// link nearer to the hosts, 1…1000. 0 means DefaultHopPermille.
	HopPermille int32
	// VolumeLoad is what an exported volume counts in addition to its observed load, in commands per
	// second, so that idle volumes are spread, too. 0 means DefaultVolumeLoad.
	VolumeLoad uint64
}

// Defaults of the policy.
const (
	DefaultMaxMoves           = 64
	DefaultHysteresisPermille = 100
	DefaultHopPermille        = 100
	DefaultVolumeLoad         = 100
)

// Health says what a gateway may be given.
type Health uint8

// The states of health.
const (
	// Usable gateways take paths and volumes.
	Usable Health = iota
	// Cordoned gateways keep what they have and take nothing new.
	Cordoned
	// Draining gateways serve until others have taken all they have.
	Draining
	// Dead gateways serve nothing.
	Dead
)

// Gateway is where paths and volumes are placed.
type Gateway struct {
	// Number is the gateway's, 1…65535.
	Number uint32
	Name   string
	Pool   string
	Node   string
	Health Health
	// Weight is the share of load relative to other gateways of the pool, 1…1000.
	Weight int32
	// OtherLoad is what the gateway does beside executing the commands of volumes that it owns
	// (forwarding, discovery, neighbours on its node), in commands per second.
	OtherLoad uint64
	Portals   []Portal
}

// Portal is an address of a gateway on one fabric.
type Portal struct {
	// Address is what hosts are told, host:port.
	Address string
	// PortalGroupTag is iSCSI's, 1…65535.
	PortalGroupTag uint32
	Fabric         string
	// Switch of the fabric; empty: not known.
	Switch string
}

// Fabric is a network that fails on its own.
type Fabric struct {
	Name     string
	Switches []string
	Links    []Link
}

// Link joins two switches of a fabric both ways.
type Link struct {
	A, B string
	// Cost of a path over it, 1…1000.
	Cost int32
}

// PoolKind is the kind of a storage pool.
type PoolKind uint8

// The kinds of storage pools.
const (
	// UnknownPool is a pool that wasn't found.
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
	// Node that a local pool is on.
	Node string
	// Owner is the number of the present owner, or of the one it moves to; 0: none.
	Owner uint32
	// Load is what was observed, in commands per second.
	Load uint64
}

// Target is exported by the gateways of its path set.
type Target struct {
	Name string
	// GatewayPool whose gateways may export it.
	GatewayPool string
	// Paths is the number of gateways that the path set is to have, 1…32.
	Paths int32
	// PathSet are the numbers of the gateways that export it at present.
	PathSet []uint32
	// Volumes behind its LUNs, by name.
	Volumes []string
	// Hosts that may log in, by name.
	Hosts []string
}

// Host logs in to targets.
type Host struct {
	Name string
	// Switches it sits on, at most one for each fabric; none: not known.
	Switches []Attachment
}

// Attachment is a place on a fabric.
type Attachment struct {
	Fabric string
	// Switch of the fabric; empty: not known.
	Switch string
}
