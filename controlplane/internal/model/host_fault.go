package model

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// HostFaultKind says what a host met at a gateway.
type HostFaultKind string

// The kinds of faults, as HostFaultKind in gateway_stream.proto.
const (
	HostLoginRefused         HostFaultKind = "LoginRefused"
	HostAuthenticationFailed HostFaultKind = "AuthenticationFailed"
	HostPingLost             HostFaultKind = "PingLost"
	HostDigestError          HostFaultKind = "DigestError"
)

const (
	// HostFaultReportedEvery is the interval of two reports of a gateway: a report has the faults of that time.
	HostFaultReportedEvery = 10 * time.Second
	// HostFaultShownFor is the time after its last report for which a fault counts as present. Gateways report every 10 s.
	HostFaultShownFor = 30 * time.Second
	// MaxHostFaults bounds the faults of one gateway that are stored.
	MaxHostFaults = 64
	// MaxInitiatorName is the limit of iSCSI names (RFC 7143 §4.2.7.1), in bytes.
	MaxInitiatorName = 223
)

// HostFault has equal faults of one initiator at one gateway. Initiator and TargetIQN are what the peer sent, and not authenticated.
type HostFault struct {
	Kind HostFaultKind `json:"kind"`
	// Initiator is empty if the peer has given no name.
	Initiator string `json:"initiator,omitempty"`
	// Address is an IP address without a port.
	Address string `json:"address,omitempty"`
	// TargetIQN is empty if the peer has given none, and for discovery.
	TargetIQN string `json:"targetIQN,omitempty"`
	// Reason is one clause.
	Reason string `json:"reason,omitempty"`
	// Count is the number of faults since First.
	Count uint64 `json:"count"`
	// First and Last are the times of the first and the last report, by the clock of the replica that received it. Between any two
	// successive reports lies less than HostFaultShownFor.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// PresentAt reports whether the fault was reported within HostFaultShownFor.
func (f *HostFault) PresentAt(now time.Time) bool { return now.Sub(f.Last) < HostFaultShownFor }

func (f *HostFault) same(other *HostFault) bool {
	return f.Kind == other.Kind && f.Initiator == other.Initiator && f.Address == other.Address && f.TargetIQN == other.TargetIQN &&
		f.Reason == other.Reason
}

// HostFaultReport has the faults that hosts met at a gateway, at most MaxHostFaults.
type HostFaultReport struct {
	Gateway GatewayRef  `json:"gateway"`
	Faults  []HostFault `json:"faults,omitempty"`
}

// Merge adds the faults of a new report, and removes those that are no longer present. If there are too many, those that were reported
// longest ago are dropped, and of equally old ones the later entries.
func (r *HostFaultReport) Merge(reported []HostFault, now time.Time) {
	kept := slices.DeleteFunc(slices.Clone(r.Faults), func(f HostFault) bool { return !f.PresentAt(now) })
	for _, fault := range reported {
		at := slices.IndexFunc(kept, func(f HostFault) bool { return f.same(&fault) })
		if at < 0 {
			fault.First, fault.Last = now, now
			kept = append(kept, fault)
			continue
		}
		kept[at].Count += fault.Count
		kept[at].Last = now
	}
	slices.SortStableFunc(kept, func(a, b HostFault) int { return cmp.Or(b.Last.Compare(a.Last), a.First.Compare(b.First)) })
	r.Faults = kept[:min(len(kept), MaxHostFaults)]
}

// Sanitized bounds a text of a peer in bytes, and replaces all characters other than printable ASCII by `?`.
func Sanitized(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
