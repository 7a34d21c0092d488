package model

import "time"

// FindingStart records that a finding about an object has begun, and that the event of it was recorded. It exists as long as the
// finding does.
type FindingStart struct {
	// ID is that of the rule in docs/RUNBOOK.md.
	ID string `json:"id"`
	// Object and Name are the kind and the name of the object.
	Object Kind   `json:"kind"`
	Name   string `json:"name"`
	// Since is the start of the finding. All replicas show it.
	Since time.Time `json:"since"`
	// Cause is that at the start.
	Cause string `json:"cause"`
}
