package placement

// Assignment is the result of Plan.
type Assignment struct {
	// Targets by name, with their path sets.
	Targets []TargetPaths
	// Volumes by name, with their owners.
	Volumes []VolumeOwner
	// Moves are the changes of the present assignment, in this order: forced ones, those that make paths redundant, those that
	// rebalance. A first path set or a first owner is no move.
	Moves []Move
	// Access by host and target.
	Access []HostAccess
	// Problems by kind and name of the object.
	Problems []Problem
}

// TargetPaths is the path set of a target.
type TargetPaths struct {
	Target string
	// Gateways are the numbers of the path set, ascending.
	Gateways []uint32
	// Serving is the number of gateways that serve now. The others are dead, and stay because no gateway can replace them.
	Serving int
	// Redundant reports whether every host keeps a path after the failure of any single failure domain.
	Redundant bool
	// Single has the failure domains that take all paths of a host, worst first; none if redundant.
	Single []FailureDomain
	// Replaced has the gateways that leave the path set, each with its replacement.
	Replaced []Replacement
}

// DomainKind is a kind of failure domain.
type DomainKind string

// The kinds of failure domains, worst first.
const (
	// DomainNone is no failure: the host reaches no serving gateway at present.
	DomainNone    DomainKind = "None"
	DomainGateway DomainKind = "Gateway"
	DomainNode    DomainKind = "Node"
	DomainFabric  DomainKind = "Fabric"
	DomainSwitch  DomainKind = "Switch"
	DomainLink    DomainKind = "Link"
)

// FailureDomain is an element whose failure takes all paths of some hosts.
type FailureDomain struct {
	Kind DomainKind
	// Name of the gateway, node or fabric, `fabric/switch` or `fabric/switch-switch`.
	Name string
	// Hosts that lose all their paths, 1 or more. A target without hosts counts as having one host with an unknown place.
	Hosts int
}

// Replacement is a gateway that leaves a path set, and its replacement.
type Replacement struct {
	Gone uint32
	// By is 0 if there is no replacement.
	By uint32
}

// VolumeOwner is the owner of a volume.
type VolumeOwner struct {
	Volume string
	// Owner is the number of a gateway, 0 if no target exports the volume or no gateway can own it.
	Owner uint32
}

// Cause is the reason of a move.
type Cause string

// The causes, in the order in which moves are listed.
const (
	// CauseDead: the gateway no longer serves, or does not exist.
	CauseDead Cause = "Dead"
	// CauseLeft: the gateway drains, or left the target's gateway pool or path set.
	CauseLeft Cause = "Left"
	// CauseUnexported: no target exports the volume any more.
	CauseUnexported Cause = "Unexported"
	// CauseSurplus: the path set has more gateways than the target wants.
	CauseSurplus Cause = "Surplus"
	// CauseRedundancy: a single failure domain took all paths.
	CauseRedundancy Cause = "Redundancy"
	// CauseRebalance: the gain exceeds the hysteresis.
	CauseRebalance Cause = "Rebalance"
)

// Move is a change of the present assignment.
type Move struct {
	Cause Cause
	// Target whose path set changes; empty for a change of owner.
	Target string
	// Volume that changes its owner; empty for a change of path set.
	Volume string
	From   uint32
	// To is 0 if there is no replacement.
	To uint32
	// Gain is the reduction of imbalance and hops by this move, for CauseRebalance, in millionths of a gateway's fair share of
	// load.
	Gain int64
}

// PortalRef is a portal as it is shown to a host.
type PortalRef struct {
	Gateway        uint32
	Address        string
	PortalGroupTag uint32
	Fabric         string
	// Cost of the path from the host: the sum of its links' costs; -1 if it is unknown or there is no path.
	Cost int32
}

// HostAccess has the portals of a target that a host is shown.
type HostAccess struct {
	Host   string
	Target string
	// Portals, nearest first; every gateway of the path set is among them.
	Portals []PortalRef
	// Serving is the number of Portals, from the first, whose gateways serve and stay.
	Serving int
}

// Plan computes an assignment. It is pure and deterministic.
func Plan(cluster Cluster) Assignment {
	p := newPlanner(cluster)
	p.keepPresent()
	p.fillPathSets()
	p.makeRedundant()
	p.rebalancePaths()
	p.keepOwners()
	p.chooseOwners()
	p.rebalanceOwners()
	assignment := Assignment{
		Targets: p.targetPaths(),
		Volumes: p.volumeOwners(),
		Moves:   p.moves(),
		Access:  p.access(),
	}
	assignment.Problems = p.problems.sorted()
	return assignment
}
