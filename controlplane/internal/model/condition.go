package model

import "time"

// ConditionStatus is Kubernetes': true, false, or nobody can tell.
type ConditionStatus string

// The statuses.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Types of conditions.
const (
	ConditionReady          = "Ready"
	ConditionProgressing    = "Progressing"
	ConditionDegraded       = "Degraded"
	ConditionPathsRedundant = "PathsRedundant"
)

// Condition is one observation, as in the Kubernetes API conventions.
type Condition struct {
	Type               string          `json:"type"`
	Status             ConditionStatus `json:"status"`
	Reason             string          `json:"reason"`
	Message            string          `json:"message,omitempty"`
	ObservedGeneration int64           `json:"observedGeneration"`
	LastTransitionTime time.Time       `json:"lastTransitionTime"`
}
