package controlplane

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Word turns an enumeration's value into the word that people read: GATEWAY_HEALTH_READY into Ready.
func Word(value protoreflect.Enum) string {
	this := value.Descriptor().Values().ByNumber(value.Number())
	if this == nil || value.Number() == 0 {
		return ""
	}
	return WordOf(this)
}

// WordOf is Word of a value that is known by its descriptor.
func WordOf(value protoreflect.EnumValueDescriptor) string {
	// The zero value, <PREFIX>_UNSPECIFIED, tells the prefix.
	zero := value.Parent().(protoreflect.EnumDescriptor).Values().ByNumber(0)
	prefix := strings.TrimSuffix(string(zero.Name()), "UNSPECIFIED")
	var word strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(string(value.Name()), prefix), "_") {
		word.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return word.String()
}
