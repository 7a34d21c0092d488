package model

import "time"

// Snapshot is a volume's content at one moment, crash-consistent.
type Snapshot struct {
	Meta   Meta           `json:"meta"`
	Spec   SnapshotSpec   `json:"spec"`
	Status SnapshotStatus `json:"status"`
}

// SnapshotSpec is what is wanted; immutable but for the reclaim policy.
type SnapshotSpec struct {
	Volume        string        `json:"volume"`
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy"`
}

// SnapshotStatus is what is observed.
type SnapshotStatus struct {
	Ready bool `json:"ready"`
	// SizeBytes is the volume's capacity at that moment.
	SizeBytes int64      `json:"sizeBytes"`
	TakenTime *time.Time `json:"takenTime,omitempty"`
	// Held is as a volume's.
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

// ValidateUpdate says what is wrong with a change from an earlier spec.
func (s *Snapshot) ValidateUpdate(from *Snapshot) Violations {
	var found Violations
	if s.Spec.Volume != from.Spec.Volume {
		found.immutable("spec.volume", from.Spec.Volume)
	}
	return found
}
