package convert

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name returns the name of a resource's object in the control plane: `<namespace>.<name>`, or `<name>` without a namespace.
func Name(r metav1.Object) string { return NameIn(r.GetNamespace(), r.GetName()) }

// NameIn returns the name in the control plane for a name in a namespace; empty for an empty name. A namespace contains no dot,
// so the name can be split again.
func NameIn(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// Namespaced reports whether resources of a kind have a namespace.
func Namespaced(kind string) bool {
	switch kind {
	case "Volume", "Target", "Host", "Snapshot":
		return true
	}
	return false
}

// Word converts a value of an enumeration to the word of a resource: GATEWAY_HEALTH_READY to Ready, and the zero value to "".
func Word(value protoreflect.Enum) string {
	this := value.Descriptor().Values().ByNumber(value.Number())
	if this == nil || value.Number() == 0 {
		return ""
	}
	return WordOf(this)
}

// WordOf is Word for a value's descriptor.
func WordOf(value protoreflect.EnumValueDescriptor) string {
	// The zero value, <PREFIX>_UNSPECIFIED, has the prefix.
	zero := value.Parent().(protoreflect.EnumDescriptor).Values().ByNumber(0)
	prefix := strings.TrimSuffix(string(zero.Name()), "UNSPECIFIED")
	var word strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(string(value.Name()), prefix), "_") {
		word.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return word.String()
}

// valueOf is the inverse of Word; the error names the field.
func valueOf[E protoreflect.Enum](field, word string) (E, error) {
	var zero E
	if word == "" {
		return zero, nil
	}
	values := zero.Descriptor().Values()
	var words []string
	for i := range values.Len() {
		if values.Get(i).Number() == 0 {
			continue
		}
		if words = append(words, WordOf(values.Get(i))); words[len(words)-1] == word {
			return zero.Type().New(values.Get(i).Number()).(E), nil
		}
	}
	return zero, fmt.Errorf("%s is %q; %s are possible", field, word, strings.Join(words, ", "))
}
