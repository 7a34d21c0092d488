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

// SetCondition puts a condition in the place of the one of its type. The time of transition moves only when the
// status does, so that what is observed again changes nothing. It says whether anything changed.
func SetCondition(conditions *[]Condition, next Condition) bool {
	for i := range *conditions {
		present := &(*conditions)[i]
		if present.Type != next.Type {
			continue
		}
		if present.Status == next.Status {
			next.LastTransitionTime = present.LastTransitionTime
		}
		changed := *present != next
		*present = next
		return changed
	}
	*conditions = append(*conditions, next)
	return true
}

// FindCondition returns the condition of a type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}
