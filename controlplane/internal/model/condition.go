package model

import (
	"slices"
	"time"
)

// ConditionStatus is that of Kubernetes: true, false or unknown.
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
	// ConditionRefused of a Gateway: the last process that used its name was refused, and the message states why.
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

// SetCondition adds or replaces the condition of that type. It reports whether anything except times changed.
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
