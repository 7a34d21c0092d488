package model

import (
	"slices"
	"time"
)

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
	// ConditionRefused of a Gateway: the last process that named it was refused, and why.
	ConditionRefused = "Refused"
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

// SetCondition puts a condition in its place and says whether that changed anything but times.
func SetCondition(all *[]Condition, c Condition, now time.Time) bool {
	c.LastTransitionTime = now.UTC()
	at := slices.IndexFunc(*all, func(have Condition) bool { return have.Type == c.Type })
	if at < 0 {
		*all = append(*all, c)
		return true
	}
	have := (*all)[at]
	if have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
	}
	if have == c {
		return false
	}
	(*all)[at] = c
	return true
}
