package model

import "time"

// Snapshot is the crash-consistent content of a volume at one moment.
type Snapshot struct {
	Meta   Meta           `json:"meta"`
	Spec   SnapshotSpec   `json:"spec"`
	Status SnapshotStatus `json:"status"`
}

// SnapshotSpec is the desired state. It is immutable except for the reclaim policy.
type SnapshotSpec struct {
	Volume        string        `json:"volume"`
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy"`
}

// SnapshotStatus is the observed state.
type SnapshotStatus struct {
	Ready bool `json:"ready"`
	// SizeBytes is the volume's capacity when the snapshot was taken.
	SizeBytes int64      `json:"sizeBytes"`
	TakenTime *time.Time `json:"takenTime,omitempty"`
	// Held has the same meaning as for a volume.
	Held       []string    `json:"held,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Metadata implements Object.
func (s *Snapshot) Metadata() *Meta { return &s.Meta }

// Kind implements Object.
func (*Snapshot) Kind() Kind { return KindSnapshot }

// StatusConditions implements Object.
func (s *Snapshot) StatusConditions() *[]Condition { return &s.Status.Conditions }

// SetDefaults implements Object.
func (s *Snapshot) SetDefaults() {
	if s.Spec.ReclaimPolicy == "" {
		s.Spec.ReclaimPolicy = ReclaimDelete
	}
}

// Validate implements Object.
func (s *Snapshot) Validate() Violations {
	found := s.Meta.Validate()
	found.reference("spec.volume", s.Spec.Volume, KindVolume)
	if p := s.Spec.ReclaimPolicy; p != ReclaimDelete && p != ReclaimRetain {
		found.Addf("spec.reclaimPolicy", "is %q; Delete and Retain are possible", p)
	}
	return found
}

// ValidateUpdate returns what is invalid about the change from an earlier spec.
func (s *Snapshot) ValidateUpdate(from *Snapshot) Violations {
	var found Violations
	if s.Spec.Volume != from.Spec.Volume {
		found.immutable("spec.volume", from.Spec.Volume)
	}
	return found
}
