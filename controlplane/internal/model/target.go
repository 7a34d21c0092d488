package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of a target.
const (
	MaxIQNLength    = 223 // RFC 7143 §4.2.7.1
	MaxLunID        = 16383
	MaxLuns         = 4096
	MaxTargetHosts  = 4096
	MaxPaths        = 32
	DefaultPaths    = 2
	DefaultIQNStart = "iqn.2026-11.dev.sluice:"
	// LunQuarantine is how long a number that was unmapped stays unused: hosts that have not rescanned would
	// write to another volume under the device they know.
	LunQuarantine = 24 * time.Hour
)

// Target is an iSCSI target: a name, LUNs, hosts, and the gateways that export it.
type Target struct {
	Meta   Meta         `json:"meta"`
	Spec   TargetSpec   `json:"spec"`
	Status TargetStatus `json:"status"`
}

// TargetSpec is what is wanted.
type TargetSpec struct {
	// IQN is the iSCSI name, unique and immutable.
	IQN         string `json:"iqn"`
	GatewayPool string `json:"gatewayPool"`
	// Paths is the number of gateways in the path set, 1…MaxPaths.
	Paths int32       `json:"paths"`
	Luns  []TargetLun `json:"luns,omitempty"`
	// Hosts that may log in. Nobody else.
	Hosts []string `json:"hosts,omitempty"`
}

// TargetLun maps a volume under a number that is the same on every gateway.
type TargetLun struct {
	ID       int32  `json:"id"`
	Volume   string `json:"volume"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// TargetStatus is what is observed, and what is given once.
type TargetStatus struct {
	// Ports are every port the target ever had, by gateway and portal group tag: relative identifiers are never reused (R13).
	Ports []TargetPort `json:"ports,omitempty"`
	// PathSet are the numbers of the gateways that export the target now.
	PathSet []uint32 `json:"pathSet,omitempty"`
	// Leaving are the gateways of the path set that hosts are not shown any more, by number, each with since when: they stay
	// until nothing is on them, or for as long as the leader waits for that.
	Leaving map[uint32]time.Time `json:"leaving,omitempty"`
	// PathGeneration is +1 at every change of the path set, and of who leaves it.
	PathGeneration int64 `json:"pathGeneration,omitempty"`
	// Applied is which Export each gateway of the path set said it has applied, by number; one that refused it has none.
	Applied map[uint32]string `json:"applied,omitempty"`
	// Quarantine are numbers of LUNs that were unmapped not long ago.
	Quarantine []QuarantinedLun `json:"quarantine,omitempty"`
	Conditions []Condition      `json:"conditions,omitempty"`
}

// TargetPort is IQN and portal group (RFC 7143 §4.2.7.1), with its relative target port identifier (SPC-5 §4.6.5),
// unique in the cluster.
type TargetPort struct {
	Gateway        uint32 `json:"gateway"`
	PortalGroupTag uint32 `json:"portalGroupTag"`
	RelativePortID uint32 `json:"relativePortID"`
}

// QuarantinedLun is a number that hosts may still hold a device for.
type QuarantinedLun struct {
	ID    int32     `json:"id"`
	Since time.Time `json:"since"`
	// Volume it showed, by name and uid: the same volume may have its number back at once, another one of its name may not. UID is
	// empty where an earlier version unmapped it.
	Volume string `json:"volume"`
	UID    string `json:"uid,omitempty"`
}

// VolumeUIDs are those of volumes by name, as they are now.
type VolumeUIDs map[string]string

// showed says that a number was that of a volume that is named so now.
func (q QuarantinedLun) showed(volume string, uids VolumeUIDs) bool {
	return q.Volume == volume && (q.UID == "" || q.UID == uids[volume])
}

// Export names what gateways are to make of the target as it is now: another spec or path set has another name, for ever.
func (t *Target) Export() string {
	return fmt.Sprintf("%d.%d", t.Meta.Generation, t.Status.PathGeneration)
}

// Shown are the gateways of the path set that hosts are shown, by number: all but those that leave it, if any stay.
func (t *Target) Shown() []uint32 {
	var shown []uint32
	for _, number := range t.Status.PathSet {
		if _, leaves := t.Status.Leaving[number]; !leaves {
			shown = append(shown, number)
		}
	}
	if len(shown) == 0 {
		return t.Status.PathSet
	}
	return shown
}

// AppliedBy says that a gateway of the path set has applied the target as it is now.
func (t *Target) AppliedBy(gateway uint32) bool { return t.Status.Applied[gateway] == t.Export() }

// Metadata implements Object.
func (t *Target) Metadata() *Meta { return &t.Meta }

// Kind implements Object.
func (*Target) Kind() Kind { return KindTarget }

// StatusConditions implements Object.
func (t *Target) StatusConditions() *[]Condition { return &t.Status.Conditions }

// SetDefaults implements Object.
func (t *Target) SetDefaults() {
	if t.Spec.IQN == "" {
		t.Spec.IQN = DefaultIQNStart + t.Meta.Name
	}
	if t.Spec.Paths == 0 {
		t.Spec.Paths = DefaultPaths
	}
}

// Validate implements Object.
func (t *Target) Validate() Violations {
	found := t.Meta.Validate()
	if problem := iscsiNameProblem(t.Spec.IQN); problem != "" {
		found.Add("spec.iqn", problem)
	}
	found.reference("spec.gatewayPool", t.Spec.GatewayPool, KindGatewayPool)
	if t.Spec.Paths < 1 || t.Spec.Paths > MaxPaths {
		found.Addf("spec.paths", "is %d; 1 to %d are possible", t.Spec.Paths, MaxPaths)
	}
	if len(t.Spec.Hosts) > MaxTargetHosts {
		found.Addf("spec.hosts", "has %d entries, at most %d are possible", len(t.Spec.Hosts), MaxTargetHosts)
	}
	seen := map[string]bool{}
	for i, host := range t.Spec.Hosts {
		field := fmt.Sprintf("spec.hosts[%d]", i)
		found.reference(field, host, KindHost)
		if seen[host] {
			found.Addf(field, "names %s twice", host)
		}
		seen[host] = true
	}
	return append(found, t.validateLuns()...)
}

func (t *Target) validateLuns() Violations {
	var found Violations
	if len(t.Spec.Luns) > MaxLuns {
		found.Addf("spec.luns", "has %d LUNs, at most %d are possible", len(t.Spec.Luns), MaxLuns)
	}
	ids, volumes := map[int32]bool{}, map[string]bool{}
	for i, lun := range t.Spec.Luns {
		field := fmt.Sprintf("spec.luns[%d]", i)
		if lun.ID < 0 || lun.ID > MaxLunID {
			found.Addf(field+".id", "is %d; 0 to %d are possible", lun.ID, MaxLunID)
		}
		found.reference(field+".volume", lun.Volume, KindVolume)
		if ids[lun.ID] {
			found.Addf(field+".id", "%d is given twice", lun.ID)
		}
		if volumes[lun.Volume] {
			found.Addf(field+".volume", "maps %s twice", lun.Volume)
		}
		ids[lun.ID], volumes[lun.Volume] = true, true
	}
	return found
}

// ValidateUpdate says what is wrong with a change from an earlier spec, now.
func (t *Target) ValidateUpdate(from *Target, uids VolumeUIDs, now time.Time) Violations {
	var found Violations
	if t.Spec.IQN != from.Spec.IQN {
		found.immutable("spec.iqn", from.Spec.IQN)
	}
	present := map[int32]string{}
	for _, lun := range from.Spec.Luns {
		present[lun.ID] = lun.Volume
	}
	for i, lun := range t.Spec.Luns {
		if volume, mapped := present[lun.ID]; mapped && volume != lun.Volume {
			found.Addf(fmt.Sprintf("spec.luns[%d].volume", i),
				"LUN %d is %s; hosts would write to %s believing it is the other: unmap it first", lun.ID, volume, lun.Volume)
		}
	}
	return append(found, t.ValidateNumbers(from.Status.Quarantine, uids, now)...)
}

// ValidateNumbers says which numbers are held for hosts that may still have another volume's device.
func (t *Target) ValidateNumbers(quarantine []QuarantinedLun, uids VolumeUIDs, now time.Time) Violations {
	var found Violations
	entries := map[int32]QuarantinedLun{}
	for _, held := range quarantine {
		entries[held.ID] = held
	}
	for i, lun := range t.Spec.Luns {
		held, is := entries[lun.ID]
		if left := held.Since.Add(LunQuarantine).Sub(now); is && !held.showed(lun.Volume, uids) && left > 0 {
			found.Addf(fmt.Sprintf("spec.luns[%d].id", i),
				"%d was volume %s until %s; hosts may still hold its device: take another number or wait %s",
				lun.ID, held.Volume, held.Since.UTC().Format(time.RFC3339), left.Round(time.Minute))
		}
	}
	return found
}

// Renumbered are the names of the volumes whose uid matters to a change from an earlier spec: of those that lose their number, and those
// that get one that is held.
func (t *Target) Renumbered(from *Target) []string {
	held, stays := map[int32]bool{}, map[int32]bool{}
	for _, entry := range from.Status.Quarantine {
		held[entry.ID] = true
	}
	var names []string
	for _, lun := range t.Spec.Luns {
		stays[lun.ID] = true
		if held[lun.ID] {
			names = append(names, lun.Volume)
		}
	}
	for _, lun := range from.Spec.Luns {
		if !stays[lun.ID] {
			names = append(names, lun.Volume)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Quarantine renews the list of numbers not to be used, after a change of the LUNs from an earlier spec.
func (t *Target) Quarantine(from *Target, uids VolumeUIDs, now time.Time) {
	mapped := map[int32]bool{}
	for _, lun := range t.Spec.Luns {
		mapped[lun.ID] = true
	}
	var held []QuarantinedLun
	for _, entry := range from.Status.Quarantine {
		if !mapped[entry.ID] && now.Sub(entry.Since) < LunQuarantine {
			held = append(held, entry)
		}
	}
	for _, lun := range from.Spec.Luns {
		if !mapped[lun.ID] {
			held = append(held, QuarantinedLun{ID: lun.ID, Since: now, Volume: lun.Volume, UID: uids[lun.Volume]})
		}
	}
	t.Status.Quarantine = held
}

var iscsiName = regexp.MustCompile(`^(iqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[a-z0-9.-]+(:[^\s,;/]+)?|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$`)

// iscsiNameProblem says why a string is no iSCSI name (RFC 7143 §4.2.7), or nothing.
func iscsiNameProblem(name string) string {
	switch {
	case name == "":
		return "is missing: an iSCSI name as in iqn.2026-11.dev.sluice:db"
	case len(name) > MaxIQNLength:
		return fmt.Sprintf("has %d bytes, an iSCSI name at most %d (RFC 7143 §4.2.7.1)", len(name), MaxIQNLength)
	case name != strings.ToLower(name):
		return fmt.Sprintf("%.60q has upper-case letters: iSCSI names are kept in lower case (RFC 3722)", name)
	case !iscsiName.MatchString(name):
		return fmt.Sprintf("%.60q is no iSCSI name: iqn.YYYY-MM.reversed.domain:name, eui.<16 digits> or naa.<16 or 32 digits>", name)
	}
	return ""
}

// WithoutPorts returns those of the wanted ports that the target does not have. They have no relative port identifier yet.
func (t *Target) WithoutPorts(wanted []TargetPort) []TargetPort {
	var missing []TargetPort
	for _, port := range wanted {
		has := func(have TargetPort) bool {
			return have.Gateway == port.Gateway && have.PortalGroupTag == port.PortalGroupTag
		}
		if !slices.ContainsFunc(t.Status.Ports, has) {
			missing = append(missing, TargetPort{Gateway: port.Gateway, PortalGroupTag: port.PortalGroupTag})
		}
	}
	return missing
}
