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

// Kinds are all of them.
var Kinds = []Kind{KindVolume, KindTarget, KindHost, KindSnapshot, KindStoragePool, KindGateway, KindGatewayPool, KindFabric}

// Meta is what every object has.
type Meta struct {
	// Name is unique among the objects of a kind and immutable: a DNS-1123 subdomain of at most 253 characters.
	Name string `json:"name"`
	// UID is given at creation, a random UUID, and never reused (R13).
	UID string `json:"uid"`
	// Version is the store's version of the object, 0 for one that is not stored. Not part of what is stored.
	Version int64 `json:"-"`
	// Generation counts the creation and the updates by callers, from 1, also updates that change nothing.
	Generation int64      `json:"generation"`
	CreateTime time.Time  `json:"createTime"`
	DeleteTime *time.Time `json:"deleteTime,omitempty"`
	// Labels are the user's.
	Labels map[string]string `json:"labels,omitempty"`
}

// Deleting says that deletion was asked for: the object stays until nothing holds it.
func (m *Meta) Deleting() bool { return m.DeleteTime != nil }

// Object is any of the nouns.
type Object interface {
	// Metadata gives access to what all have in common.
	Metadata() *Meta
	// Kind is constant for a type.
	Kind() Kind
	// StatusConditions points at the conditions in the object's status.
	StatusConditions() *[]Condition
	// SetDefaults sets each field that has no value to its documented default. The store calls it for each object that it creates,
	// updates or reads, so that no other code interprets a missing value. Called again it changes nothing.
	SetDefaults()
	// Validate says what is wrong with the spec by itself, without a look at other objects.
	Validate() Violations
}

// Normalizer is an object with values that have several forms. The store calls Normalize before it stores a user's object, and not when
// it reads one: claims on the values of a stored object are of the stored text.
type Normalizer interface {
	// Normalize brings each such value into its only form. It comes after SetDefaults.
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

// ValidName says whether a name can be an object's.
func ValidName(name string) bool {
	return len(name) <= MaxNameLength && dnsSubdomain.MatchString(name)
}

// Validate says what is wrong with name and labels.
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

// Matches says whether the object has all these labels.
func (m *Meta) Matches(labels map[string]string) bool {
	for key, value := range labels {
		if have, ok := m.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
