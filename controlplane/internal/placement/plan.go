package placement

// Assignment is what Plan decides.
type Assignment struct {
	// Targets by name, with their path sets.
	Targets []TargetPaths
	// Volumes by name, with their owners.
	Volumes []VolumeOwner
	// Moves are the changes of what is present, best first: what is forced, then what makes paths
	// redundant, then what rebalances. Paths and owners where there were none are no moves.
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
	// Serving is how many of them serve now; the others are dead and keep their place for want of a
	// gateway to replace them.
	Serving int
	// Redundant says that every host keeps a path whatever single failure domain fails.
	Redundant bool
	// Single are the failure domains that take all paths of a host, worst first; none if redundant.
	Single []FailureDomain
	// Replaced are the gateways that leave the path set, each with the one that takes its place.
	Replaced []Replacement
}

// DomainKind is a kind of failure domain.
type DomainKind string

// The kinds of failure domains, worst first.
const (
	// DomainNone is no failure at all: the host reaches no serving gateway as it is.
	DomainNone    DomainKind = "None"
	DomainGateway DomainKind = "Gateway"
	DomainNode    DomainKind = "Node"
	DomainFabric  DomainKind = "Fabric"
	DomainSwitch  DomainKind = "Switch"
	DomainLink    DomainKind = "Link"
)

// FailureDomain is something whose failure takes all paths of some hosts.
type FailureDomain struct {
	Kind DomainKind
	// Name of the gateway, node or fabric, `fabric/switch` or `fabric/switch-switch`.
	Name string
	// Hosts that lose all their paths, 1 or more; a target of no hosts counts as having one whose
	// place isn't known.
	Hosts int
}

// Replacement is a gateway that leaves a path set and the one that takes its place.
type Replacement struct {
	Gone uint32
	// By is 0 where nothing takes its place.
	By uint32
}

// VolumeOwner is the owner of a volume.
type VolumeOwner struct {
	Volume string
	// Owner is the number of a gateway, 0 where no target exports the volume or nobody can own it.
	Owner uint32
}

// Cause is why something moves.
type Cause string

// The causes, in the order in which moves are listed.
const (
	// CauseDead: the gateway serves nothing any more, or doesn't exist.
	CauseDead Cause = "Dead"
	// CauseLeft: the gateway drains, or left the target's gateway pool or path set.
	CauseLeft Cause = "Left"
	// CauseUnexported: no target exports the volume any more.
	CauseUnexported Cause = "Unexported"
	// CauseSurplus: the path set has more gateways than the target asks for.
	CauseSurplus Cause = "Surplus"
	// CauseRedundancy: a single failure domain took all paths.
	CauseRedundancy Cause = "Redundancy"
	// CauseRebalance: the gain exceeds the hysteresis.
	CauseRebalance Cause = "Rebalance"
)

// Move is a change of what is present.
type Move struct {
	Cause Cause
	// Target whose path set changes; empty for a change of owner.
	Target string
	// Volume that changes its owner; empty for a change of path set.
	Volume string
	From   uint32
	// To is 0 where nothing takes its place.
	To uint32
	// Gain is the fall of imbalance and hops by this move, for CauseRebalance, in millionths of a
	// gateway's fair share of load.
	Gain int64
}

// PortalRef is a portal as a host is shown it.
type PortalRef struct {
	Gateway        uint32
	Address        string
	PortalGroupTag uint32
	Fabric         string
	// Cost of the way from the host: the sum of its links' costs, -1 where it isn't known or there is
	// none.
	Cost int32
}

// HostAccess is what a host is shown of a target.
type HostAccess struct {
	Host   string
	Target string
	// Portals, nearest first; every gateway of the path set is among them.
	Portals []PortalRef
	// Serving is how many of the Portals, from the first, are of gateways that serve and stay.
	Serving int
}

// Plan decides. It is pure and deterministic.
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
