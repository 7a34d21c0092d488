package model

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits of a storage pool: numbers of entries, unless stated otherwise. DefaultWarnPercent is a percentage, and maxPath in
// bytes.
const (
	MaxPoolDevices     = 256
	MaxMonitors        = 15
	DefaultWarnPercent = 85
	MaxOrphansShown    = 100
	// MaxImagesListed bounds the stored part of a list of images.
	MaxImagesListed = 4096
	// MaxMarkerImages bounds the images that a gateway looks for before it marks a pool that an earlier version made without a
	// marker.
	MaxMarkerImages = 1000
	// MaxMarker bounds the id of a pool's marker, in bytes. Gateways generate 32 digits, or 64 in Ceph.
	MaxMarker = 64
	maxPath   = 4096
)

// StoragePool is the storage of volumes.
type StoragePool struct {
	Meta   Meta              `json:"meta"`
	Spec   StoragePoolSpec   `json:"spec"`
	Status StoragePoolStatus `json:"status"`
}

// StoragePoolSpec is the desired state: exactly one of Local and RBD.
type StoragePoolSpec struct {
	Local *LocalPool `json:"local,omitempty"`
	RBD   *RBDPool   `json:"rbd,omitempty"`
	// WarnPercent of the capacity, 1 to 99. From this share on the pool counts as nearly full.
	WarnPercent int32 `json:"warnPercent"`
	// GatewayPools whose gateways receive the key of a pool in Ceph; empty: the default of objects.Serves.
	GatewayPools []string `json:"gatewayPools,omitempty"`
	// AdoptableImages that callers of the operator may adopt: exact names, or patterns with `*`.
	AdoptableImages []string `json:"adoptableImages,omitempty"`
	// Adoptions counts how often an administrator has confirmed that the pool's storage was replaced. It only grows.
	Adoptions int32 `json:"adoptions,omitempty"`
}

// LocalPool is storage of one node. Only gateways of that node can own its volumes.
type LocalPool struct {
	Node string `json:"node"`
	// Directory on XFS or ext4, or Devices that the pool uses as a whole. Exactly one is set.
	Directory string   `json:"directory,omitempty"`
	Devices   []string `json:"devices,omitempty"`
}

// RBDPool is a pool in a Ceph cluster.
type RBDPool struct {
	Monitors []string `json:"monitors"`
	// User without the `client.` prefix.
	User           string `json:"user"`
	Key            Secret `json:"key"`
	Pool           string `json:"pool"`
	RadosNamespace string `json:"radosNamespace,omitempty"`
	DataPool       string `json:"dataPool,omitempty"`
}

// StoragePoolStatus is the observed state.
type StoragePoolStatus struct {
	CapacityBytes      int64       `json:"capacityBytes"`
	UsedBytes          int64       `json:"usedBytes"`
	SnapshotsSupported bool        `json:"snapshotsSupported"`
	Conditions         []Condition `json:"conditions,omitempty"`
	// OrphanedImages have a name of a volume's image but belonged to no volume in the last two lists. The API shows
	// at most MaxOrphansShown.
	// OrphanedImageCount is their number at the time ImagesListed.
	OrphanedImages     []string  `json:"orphanedImages,omitempty"`
	OrphanedImageCount int32     `json:"orphanedImageCount,omitempty"`
	ImagesListed       time.Time `json:"imagesListed,omitzero"`
	// MissingImages are images of volumes that the last two lists did not contain.
	MissingImages []string `json:"missingImages,omitempty"`
	// UnconfirmedImages were orphaned or missing in the last list for the first time. The next list confirms it: a volume can be
	// created or deleted while a gateway lists the images.
	UnconfirmedImages []string `json:"unconfirmedImages,omitempty"`
	// Marker is the id of the marker on the pool's storage, and MarkerAdoptions its count of adoptions; empty: no gateway has
	// reported one.
	Marker          string `json:"marker,omitempty"`
	MarkerAdoptions int32  `json:"markerAdoptions,omitempty"`
	// MaxVolumeBytes is the largest size of a volume that the pool can hold; 0: not known.
	MaxVolumeBytes int64 `json:"maxVolumeBytes,omitempty"`
}

// NearlyFull reports whether the used space has reached WarnPercent of the capacity. Hosts and administrators are warned then.
func (p *StoragePool) NearlyFull() bool {
	return p.Status.CapacityBytes > 0 && p.Status.UsedBytes >= p.Status.CapacityBytes/100*int64(p.Spec.WarnPercent)
}

// IsDirectory reports whether the pool is a directory of a node.
func (p *StoragePool) IsDirectory() bool { return p.Spec.Local != nil && p.Spec.Local.Directory != "" }

// Metadata implements Object.
func (p *StoragePool) Metadata() *Meta { return &p.Meta }

// Kind implements Object.
func (*StoragePool) Kind() Kind { return KindStoragePool }

// StatusConditions implements Object.
func (p *StoragePool) StatusConditions() *[]Condition { return &p.Status.Conditions }

// SetDefaults implements Object.
func (p *StoragePool) SetDefaults() {
	if p.Spec.WarnPercent == 0 {
		p.Spec.WarnPercent = DefaultWarnPercent
	}
}

// Validate implements Object.
func (p *StoragePool) Validate() Violations {
	found := p.Meta.Validate()
	if (p.Spec.Local == nil) == (p.Spec.RBD == nil) {
		found.Add("spec", "must have exactly one of local and rbd")
	}
	if p.Spec.WarnPercent < 1 || p.Spec.WarnPercent > 99 {
		found.Addf("spec.warnPercent", "is %d; 1 to 99 are possible", p.Spec.WarnPercent)
	}
	if p.Spec.Adoptions < 0 {
		found.Addf("spec.adoptions", "is %d; it is 0 and grows by one with each replacement", p.Spec.Adoptions)
	}
	if p.Spec.Local != nil {
		found = append(found, p.Spec.Local.validate()...)
	}
	found = append(found, p.validateAccess()...)
	if p.Spec.RBD != nil {
		found = append(found, p.Spec.RBD.validate()...)
	}
	return found
}

// recordsDirectory is the directory of a pool in which gateways store the pool's marker and the records of its volumes.
const recordsDirectory = ".sluice"

func (l *LocalPool) validate() Violations {
	var found Violations
	if !ValidName(l.Node) {
		found.Add("spec.local.node", "must name the node the storage is in, as its gateways report it")
	}
	if (l.Directory == "") == (len(l.Devices) == 0) {
		found.Add("spec.local", "must have exactly one of directory and devices")
	}
	if l.Directory != "" && !cleanAbsolute(l.Directory) {
		found.Addf("spec.local.directory", "%.80q is not a clean absolute path", l.Directory)
	}
	if slices.Contains(strings.Split(l.Directory, "/"), recordsDirectory) {
		found.Addf("spec.local.directory", "%.80q is below %s, where gateways keep their records: choose another directory", l.Directory,
			recordsDirectory)
	}
	if len(l.Devices) > MaxPoolDevices {
		found.Addf("spec.local.devices", "has %d entries, at most %d are possible", len(l.Devices), MaxPoolDevices)
	}
	seen := map[string]bool{}
	for i, device := range l.Devices {
		field := fmt.Sprintf("spec.local.devices[%d]", i)
		if !cleanAbsolute(device) || !strings.HasPrefix(device, "/dev/") {
			found.Addf(field, "%.80q is not the path of a device below /dev", device)
		}
		if seen[device] {
			found.Addf(field, "%.80q is given twice", device)
		}
		seen[device] = true
	}
	return found
}

func cleanAbsolute(name string) bool {
	return len(name) <= maxPath && path.IsAbs(name) && path.Clean(name) == name && !strings.ContainsRune(name, 0)
}

func (r *RBDPool) validate() Violations {
	var found Violations
	if n := len(r.Monitors); n < 1 || n > MaxMonitors {
		found.Addf("spec.rbd.monitors", "has %d entries; 1 to %d are possible", n, MaxMonitors)
	}
	for i, monitor := range r.Monitors {
		if _, _, err := net.SplitHostPort(monitor); err != nil {
			found.Addf(fmt.Sprintf("spec.rbd.monitors[%d]", i), "%.80q is not host:port: %v", monitor, err)
		}
	}
	if r.User == "" || strings.HasPrefix(r.User, "client.") {
		found.Add("spec.rbd.user", "must be a Ceph user without the `client.` in front")
	}
	if r.Key.IsZero() {
		found.Add("spec.rbd.key", "is missing: the user's key, as `ceph auth print-key` gives it")
	}
	if r.Pool == "" {
		found.Add("spec.rbd.pool", "is missing")
	}
	return found
}

// ValidateUpdate returns what is invalid about the change from an earlier spec.
func (p *StoragePool) ValidateUpdate(from *StoragePool) Violations {
	var found Violations
	if p.Spec.Adoptions < from.Spec.Adoptions {
		found.Addf("spec.adoptions", "is %d, and %d replacements were confirmed already: it only grows", p.Spec.Adoptions,
			from.Spec.Adoptions)
	}
	switch {
	case (p.Spec.Local == nil) != (from.Spec.Local == nil):
		found.Add("spec", "the kind of a pool cannot be changed: make a new pool")
	case p.Spec.Local != nil:
		if p.Spec.Local.Node != from.Spec.Local.Node {
			found.immutable("spec.local.node", from.Spec.Local.Node)
		}
		if p.Spec.Local.Directory != from.Spec.Local.Directory {
			found.immutable("spec.local.directory", from.Spec.Local.Directory)
		}
	case p.Spec.RBD != nil && from.Spec.RBD != nil:
		if p.Spec.RBD.Pool != from.Spec.RBD.Pool {
			found.immutable("spec.rbd.pool", from.Spec.RBD.Pool)
		}
		if p.Spec.RBD.RadosNamespace != from.Spec.RBD.RadosNamespace {
			found.immutable("spec.rbd.radosNamespace", from.Spec.RBD.RadosNamespace)
		}
	}
	return found
}
