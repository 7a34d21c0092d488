package model

import "time"

// Severity of an event.
type Severity string

// The severities. An alarm stays in view until its cause has gone.
const (
	SeverityNormal  Severity = "Normal"
	SeverityWarning Severity = "Warning"
	SeverityAlarm   Severity = "Alarm"
)

// Event tells people what happened to an object.
type Event struct {
	Sequence int64     `json:"-"`
	Time     time.Time `json:"time"`
	Severity Severity  `json:"severity"`
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name"`
	// Reason is one CamelCase word for programs; Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
}
