package model

import (
	"fmt"
	"time"
)

// Session is an iSCSI session, as its gateway reports it.
type Session struct {
	// Gateway by name; GatewayNumber is set by the store.
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
	// Since login.
	Reads         uint64 `json:"reads"`
	Writes        uint64 `json:"writes"`
	ReadBytes     uint64 `json:"readBytes"`
	WriteBytes    uint64 `json:"writeBytes"`
	OtherCommands uint64 `json:"otherCommands"`
	// Version is the store's.
	Version int64 `json:"-"`
}

// Name is what people call it by.
func (s *Session) Name() string { return fmt.Sprintf("%s.%d.%s", s.Gateway, s.TSIH, s.ISID) }

// Same says that it is the session that was seen earlier, not one that was given its number since.
func (s *Session) Same(earlier *Session) bool {
	return s.GatewayNumber == earlier.GatewayNumber && s.TSIH == earlier.TSIH && s.ISID == earlier.ISID &&
		s.Initiator == earlier.Initiator && s.LoginTime.Equal(earlier.LoginTime)
}

// EventSeverity is how bad an event is.
type EventSeverity string

// The severities.
const (
	EventNormal  EventSeverity = "Normal"
	EventWarning EventSeverity = "Warning"
	EventAlarm   EventSeverity = "Alarm"
)

// Event tells people what happened to an object.
type Event struct {
	Time     time.Time     `json:"time"`
	Severity EventSeverity `json:"severity"`
	// Object it is about, by kind and name.
	Object Kind   `json:"kind"`
	Name   string `json:"name"`
	// Reason is one CamelCase word.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Count is how often the same has happened in a row.
	Count int32 `json:"count"`
	// Sequence is the store's: it grows, and is unique.
	Sequence int64 `json:"-"`
}
