package controlplane

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Word turns an enumeration's value into the word that people read: GATEWAY_HEALTH_READY into Ready.
func Word(value protoreflect.Enum) string {
	descriptor := value.Descriptor()
	this := descriptor.Values().ByNumber(value.Number())
	if this == nil || value.Number() == 0 {
		return ""
	}
	// The zero value, <PREFIX>_UNSPECIFIED, tells the prefix.
	prefix := strings.TrimSuffix(string(descriptor.Values().ByNumber(0).Name()), "UNSPECIFIED")
	var word strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(string(this.Name()), prefix), "_") {
		word.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return word.String()
}
