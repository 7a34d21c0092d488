package mirror

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/operator/convert"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// elsewhere has the field of a resource for a field of the control plane with another name; or, after a dash, why there is none.
var elsewhere = map[string]string{
	"ChapCredentials.password":         "secretRef",
	"ChapCredentials.password_set":     "- the Secret is there or not",
	"GatewayPoolSpec.fabrics":          "portals",
	"GatewayPoolStatus.gateways":       "replicas",
	"GatewayPoolStatus.gateways_ready": "readyReplicas",
	"GatewaySpec.forwarding_address":   "- the pod's address, with template.forwardingPort",
	"GatewayStatus.applied_version":    "- changes all the time; Target paths' `applied` tells what matters of it",
	"GatewayStatus.drain_requested":    "- health shows the result; only clients that wait need it",
	"GatewayStatus.last_seen_time":     "- changes all the time; health tells what matters of it",
	"GatewayStatus.portal_group_tags":  "portals",
	"Portal.advertised":                "- where the pod runs, or its Service, decides; the status tells",
	"Portal.listen":                    "- where the pod runs decides; the status tells",
	"Portal.switch":                    "- an annotation of the node; the status tells",
	"RbdPool.key":                      "keySecretRef",
	"SnapshotStatus.ready":             "- the condition Ready",
	"SnapshotStatus.size_bytes":        "size",
	"VolumeSpec.size_bytes":            "size",
	"VolumeStatus.capacity_bytes":      "capacity",
	"VolumeStatus.requested_move":      "- the condition Progressing tells of it",
}

// impossible has values of an enumeration that the control plane refuses in a field.
var impossible = map[string]string{"SnapshotSpec.reclaim_policy": "Trash"}

// schema is the part of a CRD's schema with fields and their possible values.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	Enum       []any             `json:"enum"`
}

// field returns a field by its name in the protocol, compared as JSON without regard to case (naa is NAA in Go).
func (s schema) field(name string) (schema, bool) {
	for have, property := range s.Properties {
		if strings.EqualFold(have, name) {
			return property, true
		}
	}
	return schema{}, false
}

func crd(t *testing.T, plural string) schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../config/crd/bases", "sluice.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestAResourceHasEveryFieldThatTheControlPlaneHas(t *testing.T) {
	used := map[string]bool{}
	for plural, object := range map[string]Object{
		"volumes": &pb.Volume{}, "snapshots": &pb.Snapshot{}, "targets": &pb.Target{}, "hosts": &pb.Host{},
		"storagepools": &pb.StoragePool{}, "fabrics": &pb.Fabric{}, "gatewaypools": &pb.GatewayPool{}, "gateways": &pb.Gateway{},
	} {
		resource := crd(t, plural)
		for _, part := range []string{"spec", "status"} {
			message := object.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(part)).Message()
			compare(t, used, message, resource.Properties[part])
		}
	}
	for name := range elsewhere {
		if !used[name] {
			t.Errorf("the table of exceptions names %s, which is none", name)
		}
	}
}

func compare(t *testing.T, used map[string]bool, message protoreflect.MessageDescriptor, resource schema) {
	t.Helper()
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		name := string(message.Name()) + "." + string(field.Name())
		property, there := resource.field(field.JSONName())
		if other, excepted := elsewhere[name]; excepted {
			if used[name] = !there; there {
				t.Errorf("%s is among the exceptions, and the resource has it", name)
			} else if _, found := resource.field(other); !found && !strings.HasPrefix(other, "- ") {
				t.Errorf("%s should be the resource's %s, which it does not have", name, other)
			}
			continue
		}
		if !there {
			t.Errorf("the control plane has %s, the resource has no such field: add it to operator/api/v1alpha1 (and to want or show "+
				"of its controller), or say here where it is", name)
			continue
		}
		if field.IsList() && property.Items != nil {
			property = *property.Items
		}
		switch {
		case field.Enum() != nil && len(property.Enum) > 0:
			compareValues(t, name, field, property.Enum)
		case field.Message() != nil && field.Message().Name() != "Condition" && field.Message().ParentFile().Package() == "sluice.v1":
			compare(t, used, field.Message(), property)
		}
	}
}

func compareValues(t *testing.T, name string, field protoreflect.FieldDescriptor, possible []any) {
	t.Helper()
	values := field.Enum().Values()
	for i := range values.Len() {
		if values.Get(i).Number() == 0 {
			continue
		}
		word := convert.WordOf(values.Get(i))
		if slices.Contains(possible, any(word)) == (impossible[name] == word) {
			t.Errorf("%s: the control plane knows %s; the resource takes %v", name, word, possible)
		}
	}
}
