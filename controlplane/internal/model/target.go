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
	// LunQuarantine is the time for which a LUN number stays unused after it was unmapped. A host that has not rescanned would
	// write to another volume through the device that it knows.
	LunQuarantine = 24 * time.Hour
)

// Target is an iSCSI target: a name, LUNs, hosts, and the gateways that export it.
type Target struct {
	Meta   Meta         `json:"meta"`
	Spec   TargetSpec   `json:"spec"`
	Status TargetStatus `json:"status"`
}

// TargetSpec is the desired state.
type TargetSpec struct {
	// IQN is the iSCSI name, unique and immutable.
	IQN         string `json:"iqn"`
	GatewayPool string `json:"gatewayPool"`
	// Paths is the number of gateways in the path set, 1…MaxPaths.
	Paths int32       `json:"paths"`
	Luns  []TargetLun `json:"luns,omitempty"`
	// Hosts that may log in. No other host may.
	Hosts []string `json:"hosts,omitempty"`
}

// TargetLun maps a volume to a LUN number, 0…MaxLunID, that is the same on every gateway.
type TargetLun struct {
	ID       int32  `json:"id"`
	Volume   string `json:"volume"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// TargetStatus is the observed state, and the values that are assigned once.
type TargetStatus struct {
	// Ports has every port that the target ever had, by gateway and portal group tag: relative identifiers are never reused
	// (R13).
	Ports []TargetPort `json:"ports,omitempty"`
	// PathSet has the numbers of the gateways that export the target now.
	PathSet []uint32 `json:"pathSet,omitempty"`
	// Leaving are the gateways of the path set that are no longer reported to hosts: number, and the time since when. Each stays
	// until no session uses it, or until the leader stops waiting.
	Leaving map[uint32]time.Time `json:"leaving,omitempty"`
	// PathGeneration increases by one at each change of PathSet or Leaving.
	PathGeneration int64 `json:"pathGeneration,omitempty"`
	// Applied is the Export that each gateway of the path set reported as applied, by number. A gateway that refused it has none.
	Applied map[uint32]string `json:"applied,omitempty"`
	// Quarantine has the LUN numbers that were unmapped within LunQuarantine.
	Quarantine []QuarantinedLun `json:"quarantine,omitempty"`
	Conditions []Condition      `json:"conditions,omitempty"`
}

// TargetPort is IQN and portal group (RFC 7143 §4.2.7.1) with its relative target port identifier (SPC-5 §4.6.5), which is unique
// in the cluster.
type TargetPort struct {
	Gateway        uint32 `json:"gateway"`
	PortalGroupTag uint32 `json:"portalGroupTag"`
	RelativePortID uint32 `json:"relativePortID"`
}

// QuarantinedLun is a LUN number for which hosts may still have a device.
type QuarantinedLun struct {
	ID    int32     `json:"id"`
	Since time.Time `json:"since"`
	// Volume that had the number, by name and uid. The same volume may have its number again at once; another volume of that name
	// may not. UID is empty if an earlier version unmapped the LUN.
	Volume string `json:"volume"`
	UID    string `json:"uid,omitempty"`
}

// VolumeUIDs has the present uid of each volume, by name.
type VolumeUIDs map[string]string

// showed reports whether the number belonged to the volume that has this name now.
func (q QuarantinedLun) showed(volume string, uids VolumeUIDs) bool {
	return q.Volume == volume && (q.UID == "" || q.UID == uids[volume])
}

// Export identifies the present spec and path set of the target for gateways. A value is never reused for another spec or path
// set.
func (t *Target) Export() string {
	return fmt.Sprintf("%d.%d", t.Meta.Generation, t.Status.PathGeneration)
}

// Shown returns the gateways of the path set that are reported to hosts, by number: all except the leaving ones, if any others
// remain.
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

// AppliedBy reports whether a gateway of the path set has applied the present spec and path set of the target.
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

// ValidateUpdate returns what is invalid about the change from an earlier spec, at the time now.
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

// ValidateNumbers returns the LUN numbers that are in quarantine, because hosts may still have another volume's device.
func (t *Target) ValidateNumbers(quarantine []QuarantinedLun, uids VolumeUIDs, now time.Time) Violations {
	var found Violations
	entries := map[int32]QuarantinedLun{}
	for _, held := range quarantine {
		entries[held.ID] = held
	}
	for i, lun := range t.Spec.Luns {
		held, exists := entries[lun.ID]
		if left := held.Since.Add(LunQuarantine).Sub(now); exists && !held.showed(lun.Volume, uids) && left > 0 {
			found.Addf(fmt.Sprintf("spec.luns[%d].id", i),
				"%d was volume %s until %s; hosts may still hold its device: take another number or wait %s",
				lun.ID, held.Volume, held.Since.UTC().Format(time.RFC3339), left.Round(time.Minute))
		}
	}
	return found
}

// Renumbered returns the names of the volumes whose uid matters to a change from an earlier spec: those that lose their number,
// and those that get a number in quarantine.
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

// Quarantine updates the list of LUN numbers that must not be used, after a change of the LUNs from an earlier spec.
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

// iscsiNameProblem returns why a string is no iSCSI name (RFC 7143 §4.2.7), or an empty string.
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

// WithoutPorts returns the wanted ports that the target does not have. They have no relative port identifier yet.
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
