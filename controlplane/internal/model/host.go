package model

import (
	"fmt"
	"strings"
)

// Limits of a host.
const (
	MaxInitiators      = 16
	MinChapSecret      = 12
	MaxChapSecret      = 255
	MaxChapUsername    = 255
	MaxHostSessions    = 4096
	DefaultMaxSessions = 64
)

// Host is a machine that may log in.
type Host struct {
	Meta   Meta       `json:"meta"`
	Spec   HostSpec   `json:"spec"`
	Status HostStatus `json:"status"`
}

// HostSpec is the desired state.
type HostSpec struct {
	// Initiators are the host's iSCSI names. A name belongs to one host.
	Initiators []string         `json:"initiators"`
	Chap       *ChapCredentials `json:"chap,omitempty"`
	// MutualChap are the credentials by which the target authenticates itself to this host.
	MutualChap *ChapCredentials `json:"mutualChap,omitempty"`
	// AllowUnauthenticated must be set for a host without CHAP, so that no host lacks CHAP by mistake.
	AllowUnauthenticated bool `json:"allowUnauthenticated,omitempty"`
	// Switches to which the host is attached, as `fabric/switch`, one for each fabric.
	Switches    []string `json:"switches,omitempty"`
	MaxSessions int32    `json:"maxSessions"`
}

// ChapCredentials are a name and a secret (RFC 7143 §12.1). The secret decides that CHAP is required; the name has a default.
type ChapCredentials struct {
	// Username is CHAP_N, 0 to 255 bytes. Empty: the initiator's own name, or the target's for mutual CHAP. ChapUsername
	// and MutualChapUsername resolve the default; no other code interprets an empty name.
	Username string `json:"username,omitempty"`
	// Password is a Secret: it has no form that a log could show.
	Password Secret `json:"password"`
}

// ChapUsername is the CHAP_N by which this initiator of the host authenticates (RFC 7143 §12.1.3), with the default resolved.
// It is empty only if the host has no CHAP credentials.
func (s *HostSpec) ChapUsername(initiator string) string {
	return s.Chap.username(initiator)
}

// MutualChapUsername is the CHAP_N by which the target authenticates itself to the host, with the default resolved. It is
// empty only if the host has no mutual CHAP credentials.
func (s *HostSpec) MutualChapUsername(iqn string) string {
	return s.MutualChap.username(iqn)
}

func (c *ChapCredentials) username(fallback string) string {
	switch {
	case c == nil:
		return ""
	case c.Username != "":
		return c.Username
	}
	return fallback
}

// HostStatus is the observed state.
type HostStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Metadata implements Object.
func (h *Host) Metadata() *Meta { return &h.Meta }

// Kind implements Object.
func (*Host) Kind() Kind { return KindHost }

// StatusConditions implements Object.
func (h *Host) StatusConditions() *[]Condition { return &h.Status.Conditions }

// SetDefaults implements Object.
func (h *Host) SetDefaults() {
	if h.Spec.MaxSessions == 0 {
		h.Spec.MaxSessions = DefaultMaxSessions
	}
}

// Validate implements Object.
func (h *Host) Validate() Violations {
	found := h.Meta.Validate()
	if n := len(h.Spec.Initiators); n < 1 || n > MaxInitiators {
		found.Addf("spec.initiators", "has %d names; 1 to %d are possible", n, MaxInitiators)
	}
	seen := map[string]bool{}
	for i, name := range h.Spec.Initiators {
		field := fmt.Sprintf("spec.initiators[%d]", i)
		if problem := iscsiNameProblem(name); problem != "" {
			found.Add(field, problem)
		}
		if seen[name] {
			found.Addf(field, "%.60q is given twice", name)
		}
		seen[name] = true
	}
	fabrics := map[string]bool{}
	for i, place := range h.Spec.Switches {
		field := fmt.Sprintf("spec.switches[%d]", i)
		fabric, name, whole := strings.Cut(place, "/")
		if !whole || !ValidName(fabric) || !ValidName(name) {
			found.Addf(field, "%.60q is no place: write <fabric>/<switch>", place)
		} else if fabrics[fabric] {
			found.Addf(field, "places the host twice on fabric %s", fabric)
		}
		fabrics[fabric] = true
	}
	if h.Spec.MaxSessions < 1 || h.Spec.MaxSessions > MaxHostSessions {
		found.Addf("spec.maxSessions", "is %d; 1 to %d are possible", h.Spec.MaxSessions, MaxHostSessions)
	}
	return append(found, h.validateChap()...)
}

func (h *Host) validateChap() Violations {
	var found Violations
	if h.Spec.Chap == nil {
		if !h.Spec.AllowUnauthenticated {
			found.Add("spec.chap", "is missing: every client that uses the initiator name could log in; "+
				"set allowUnauthenticated if that is intended")
		}
		if h.Spec.MutualChap != nil {
			found.Add("spec.mutualChap", "needs spec.chap, too (RFC 7143 §12.1.3)")
		}
		return found
	}
	found = append(found, h.Spec.Chap.validate("spec.chap")...)
	if h.Spec.MutualChap != nil {
		found = append(found, h.Spec.MutualChap.validate("spec.mutualChap")...)
		if h.Spec.Chap.Password == h.Spec.MutualChap.Password {
			found.Add("spec.mutualChap.password", "is the same as spec.chap.password: "+
				"either side could answer with the other's response (RFC 7143 §9.2.1)")
		}
	}
	return found
}

func (c *ChapCredentials) validate(field string) Violations {
	var found Violations
	if len(c.Username) > MaxChapUsername {
		found.Addf(field+".username", "has %d bytes, at most %d are possible", len(c.Username), MaxChapUsername)
	}
	if n := len(c.Password.Reveal()); n < MinChapSecret || n > MaxChapSecret {
		found.Addf(field+".password", "has %d bytes; %d to %d are possible, and Windows takes 12 to 16",
			n, MinChapSecret, MaxChapSecret)
	}
	return found
}
