package model

import (
	"regexp"
	"time"
)

// Kind names a kind of object, as users write it.
type Kind string

// The kinds.
const (
	KindVolume      Kind = "Volume"
	KindTarget      Kind = "Target"
	KindHost        Kind = "Host"
	KindSnapshot    Kind = "Snapshot"
	KindStoragePool Kind = "StoragePool"
	KindGateway     Kind = "Gateway"
	KindGatewayPool Kind = "GatewayPool"
	KindFabric      Kind = "Fabric"
)

// Kinds has all kinds.
var Kinds = []Kind{KindVolume, KindTarget, KindHost, KindSnapshot, KindStoragePool, KindGateway, KindGatewayPool, KindFabric}

// Meta is the metadata that every object has.
type Meta struct {
	// Name is unique among the objects of a kind and immutable: a DNS-1123 subdomain of at most 253 characters.
	Name string `json:"name"`
	// UID is a random UUID that is assigned at creation and never reused (R13).
	UID string `json:"uid"`
	// Version is the store's version of the object; 0 if it is not stored. It is not part of the stored object.
	Version int64 `json:"-"`
	// Generation counts the creation and the updates by callers, from 1, also updates that change nothing.
	Generation int64      `json:"generation"`
	CreateTime time.Time  `json:"createTime"`
	DeleteTime *time.Time `json:"deleteTime,omitempty"`
	// Labels of the user.
	Labels map[string]string `json:"labels,omitempty"`
}

// Deleting reports whether deletion was requested. The object stays until nothing depends on it.
func (m *Meta) Deleting() bool { return m.DeleteTime != nil }

// Object is an object of any kind.
type Object interface {
	// Metadata returns the object's metadata, which the caller may change.
	Metadata() *Meta
	// Kind is constant for a type.
	Kind() Kind
	// StatusConditions points at the conditions in the object's status.
	StatusConditions() *[]Condition
	// SetDefaults sets each field without a value to its documented default. The store calls it for each object that it creates,
	// updates or reads, so no other code interprets a missing value. It is idempotent.
	SetDefaults()
	// Validate returns the problems of the spec itself, without regard to other objects.
	Validate() Violations
}

// Normalizer is an object with values that have several forms. The store calls Normalize before it stores a user's object, but
// not when it reads one: claims on the values of a stored object use the stored text.
type Normalizer interface {
	// Normalize converts each such value to its canonical form. The store calls it after SetDefaults.
	Normalize()
}

var dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Limits of names and labels.
const (
	MaxNameLength   = 253
	MaxLabels       = 64
	MaxLabelKey     = 317
	MaxLabelValue   = 1024
	nameDescription = "must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', at most 253 characters, as in `db-1`"
)

// ValidName reports whether a name is valid for an object.
func ValidName(name string) bool {
	return len(name) <= MaxNameLength && dnsSubdomain.MatchString(name)
}

// Validate returns the problems of name and labels.
func (m *Meta) Validate() Violations {
	var v Violations
	if !ValidName(m.Name) {
		v.Add("meta.name", nameDescription)
	}
	if len(m.Labels) > MaxLabels {
		v.Addf("meta.labels", "holds %d labels, at most %d are kept", len(m.Labels), MaxLabels)
	}
	for key, value := range m.Labels {
		if key == "" || len(key) > MaxLabelKey || len(value) > MaxLabelValue {
			v.Addf("meta.labels", "label %.40q: a key has 1…%d bytes, a value at most %d", key, MaxLabelKey, MaxLabelValue)
		}
	}
	return v
}

// Matches reports whether the object has all these labels.
func (m *Meta) Matches(labels map[string]string) bool {
	for key, value := range labels {
		if have, ok := m.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
