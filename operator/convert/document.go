package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// APIVersion of the custom resources.
var APIVersion = v1alpha1.GroupVersion.String()

// SecretKey names a key of a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// SecretReader returns the value that a field refers to.
type SecretReader func(field string, ref SecretKey) (string, error)

// operatorOnly are the fields of a specification that only the operator uses, by kind.
var operatorOnly = map[string][]string{
	"GatewayPool": {"replicas", "placement", "template", "rollout"},
	"Gateway":     {"template"},
}

// empty returns an empty resource of each kind.
var empty = map[string]func() v1alpha1.Resource{
	"Volume": func() v1alpha1.Resource { return &v1alpha1.Volume{} }, "Target": func() v1alpha1.Resource { return &v1alpha1.Target{} },
	"Host": func() v1alpha1.Resource { return &v1alpha1.Host{} }, "Snapshot": func() v1alpha1.Resource { return &v1alpha1.Snapshot{} },
	"GatewayPool": func() v1alpha1.Resource { return &v1alpha1.GatewayPool{} },
	"Gateway":     func() v1alpha1.Resource { return &v1alpha1.Gateway{} },
	"StoragePool": func() v1alpha1.Resource { return &v1alpha1.StoragePool{} },
	"Fabric":      func() v1alpha1.Resource { return &v1alpha1.Fabric{} },
}

// Read converts a resource in JSON to the API's object. It refuses fields that the resource does not have, because a misspelled
// field would have no effect. A reference to a Secret may be omitted: then the API keeps its secret. `unused` are the fields of
// the specification that only the operator uses.
func Read(text []byte, secret SecretReader) (object proto.Message, unused []string, err error) {
	var head struct {
		Kind string                     `json:"kind"`
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, nil, err
	}
	made, known := empty[head.Kind]
	if !known {
		return nil, nil, fmt.Errorf("there is no kind %q; %s are possible", head.Kind, strings.Join(slices.Sorted(maps.Keys(empty)), ", "))
	}
	r := made()
	if err := decode(text, r); err != nil {
		return nil, nil, err
	}
	if err := checkHead(head.Kind, r); err != nil {
		return nil, nil, err
	}
	if object, err = objectOf(r, secret); err != nil {
		return nil, nil, err
	}
	for _, field := range operatorOnly[head.Kind] {
		if _, given := head.Spec[field]; given {
			unused = append(unused, "spec."+field)
		}
	}
	return object, unused, nil
}

// decode reads a resource except its status, which the control plane writes.
func decode(text []byte, r v1alpha1.Resource) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "status")
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(rest))
	decoder.DisallowUnknownFields()
	return decoder.Decode(r)
}

func checkHead(kind string, r v1alpha1.Resource) error {
	if r.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	if r.GetNamespace() != "" && !Namespaced(kind) {
		return fmt.Errorf("metadata.namespace is %q, and a %s has no namespace", r.GetNamespace(), kind)
	}
	return nil
}

// objectOf returns the API's object of a resource.
func objectOf(r v1alpha1.Resource, secret SecretReader) (proto.Message, error) {
	meta, err := metaOf(r)
	if err != nil {
		return nil, err
	}
	switch r := r.(type) {
	case *v1alpha1.Volume:
		spec, err := VolumeSpec(r)
		return &pb.Volume{Meta: meta, Spec: spec}, err
	case *v1alpha1.Target:
		return &pb.Target{Meta: meta, Spec: TargetSpec(r)}, nil
	case *v1alpha1.Host:
		spec, err := HostSpec(r, withDefault(secret, "password"))
		return &pb.Host{Meta: meta, Spec: spec}, err
	case *v1alpha1.Snapshot:
		spec, err := SnapshotSpec(r)
		return &pb.Snapshot{Meta: meta, Spec: spec}, err
	case *v1alpha1.GatewayPool:
		return &pb.GatewayPool{Meta: meta, Spec: GatewayPoolSpec(r)}, nil
	case *v1alpha1.Gateway:
		spec, err := placedGatewaySpec(r)
		return &pb.Gateway{Meta: meta, Spec: spec}, err
	case *v1alpha1.StoragePool:
		spec, err := StoragePoolSpec(r, withDefault(secret, "key"))
		return &pb.StoragePool{Meta: meta, Spec: spec}, err
	case *v1alpha1.Fabric:
		return &pb.Fabric{Meta: meta, Spec: FabricSpec(r)}, nil
	}
	return nil, fmt.Errorf("%T is not a resource of Sluice", r)
}

// withDefault reads no Secret if none is named, and otherwise uses the default key in the definition of the resource.
func withDefault(secret SecretReader, key string) SecretReader {
	return func(field string, ref SecretKey) (string, error) {
		if ref.Name == "" {
			return "", nil
		}
		if ref.Key == "" {
			ref.Key = key
		}
		return secret(field, ref)
	}
}

func metaOf(r metav1.Object) (*pb.ObjectMeta, error) {
	meta := &pb.ObjectMeta{Name: Name(r), Labels: r.GetLabels()}
	if version := r.GetResourceVersion(); version != "" {
		number, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("metadata.resourceVersion is %q, which the control plane did not give: leave it out", version)
		}
		meta.ResourceVersion = number
	}
	return meta, nil
}
