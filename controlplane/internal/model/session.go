package model

import (
	"fmt"
	"time"
)

// Session is an iSCSI session, as its gateway reports it.
type Session struct {
	// Gateway by name. The store sets GatewayNumber.
	Gateway       string `json:"gateway"`
	GatewayNumber uint32 `json:"gatewayNumber"`
	TSIH          uint32 `json:"tsih"`
	TargetIQN     string `json:"targetIQN"`
	HostUID       string `json:"hostUID,omitempty"`
	Initiator     string `json:"initiator"`
	// ISID is 12 hexadecimal digits (RFC 7143 §11.12.5).
	ISID             string            `json:"isid"`
	PortalGroupTag   uint32            `json:"portalGroupTag"`
	InitiatorAddress string            `json:"initiatorAddress"`
	PortalAddress    string            `json:"portalAddress"`
	LoginTime        time.Time         `json:"loginTime"`
	Parameters       map[string]string `json:"parameters,omitempty"`
	// Counters since login.
	Reads         uint64 `json:"reads"`
	Writes        uint64 `json:"writes"`
	ReadBytes     uint64 `json:"readBytes"`
	WriteBytes    uint64 `json:"writeBytes"`
	OtherCommands uint64 `json:"otherCommands"`
	// Version of the record in the store.
	Version int64 `json:"-"`
}

// Name is the session's name in the CLI and the API.
func (s *Session) Name() string { return fmt.Sprintf("%s.%d.%s", s.Gateway, s.TSIH, s.ISID) }

// Same reports whether it is the session that was seen earlier, and not a later session with the same numbers.
func (s *Session) Same(earlier *Session) bool {
	return s.GatewayNumber == earlier.GatewayNumber && s.TSIH == earlier.TSIH && s.ISID == earlier.ISID &&
		s.Initiator == earlier.Initiator && s.LoginTime.Equal(earlier.LoginTime)
}

// EventSeverity is the severity of an event.
type EventSeverity string

// The severities.
const (
	EventNormal  EventSeverity = "Normal"
	EventWarning EventSeverity = "Warning"
	EventAlarm   EventSeverity = "Alarm"
)

// Event describes something that happened to an object.
type Event struct {
	Time     time.Time     `json:"time"`
	Severity EventSeverity `json:"severity"`
	// Object is the kind of the object that the event is about, and Name its name.
	Object Kind   `json:"kind"`
	Name   string `json:"name"`
	// Reason is one CamelCase word.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Count is how often the event occurred in succession.
	Count int32 `json:"count"`
	// Sequence is assigned by the store. It is unique and increases.
	Sequence int64 `json:"-"`
}
