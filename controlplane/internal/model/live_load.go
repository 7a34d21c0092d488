package model

import "time"

const (
	// LiveLoadInterval is the interval between two live loads of a gateway in the store.
	LiveLoadInterval = 2 * time.Second
	// LiveLoadWanted is how long live loads are stored after a replica has asked for them.
	LiveLoadWanted = 10 * time.Second
)

// LiveLoad has what a gateway has counted: two of them give present rates. There is at most one for each gateway, and it is
// renewed only while a replica asks for it.
type LiveLoad struct {
	Gateway GatewayRef `json:"gateway"`
	// Clock is the gateway's own clock (CLOCK_BOOTTIME) when it counted.
	Clock        time.Duration `json:"clock"`
	Sessions     uint32        `json:"sessions,omitempty"`
	BusyPermille uint32        `json:"busyPermille,omitempty"`
	// Volumes and Hosts by uid. Volumes without a command are missing.
	Volumes map[string]VolumeCounts `json:"volumes,omitempty"`
	Hosts   map[string]HostCounts   `json:"hosts,omitempty"`
}

// VolumeCounts are counts since the gateway opened the volume. Times are sums of the durations of commands.
type VolumeCounts struct {
	Commands   uint64        `json:"commands,omitempty"`
	Reads      uint64        `json:"reads,omitempty"`
	Writes     uint64        `json:"writes,omitempty"`
	ReadBytes  uint64        `json:"readBytes,omitempty"`
	WriteBytes uint64        `json:"writeBytes,omitempty"`
	ReadTime   time.Duration `json:"readTime,omitempty"`
	WriteTime  time.Duration `json:"writeTime,omitempty"`
	InProgress uint32        `json:"inProgress,omitempty"`
}

// HostCounts are counts over the sessions of a host on a gateway.
type HostCounts struct {
	Sessions     uint32        `json:"sessions,omitempty"`
	Reads        uint64        `json:"reads,omitempty"`
	Writes       uint64        `json:"writes,omitempty"`
	Others       uint64        `json:"others,omitempty"`
	ReadBytes    uint64        `json:"readBytes,omitempty"`
	WriteBytes   uint64        `json:"writeBytes,omitempty"`
	Answered     uint64        `json:"answered,omitempty"`
	AnsweredTime time.Duration `json:"answeredTime,omitempty"`
	InProgress   uint32        `json:"inProgress,omitempty"`
}
