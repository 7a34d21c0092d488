package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// LabelResource on an object of the control plane names the resource from which the operator made it, as `<namespace>/<name>`.
const LabelResource = "sluice.dev/resource"

// Write returns the resource of an object of the API, as JSON. It omits fields that only the operator uses, and references to
// Secrets, which the control plane does not know.
func Write(object proto.Message) (map[string]any, error) {
	have, ok := object.(interface{ GetMeta() *pb.ObjectMeta })
	if !ok {
		return nil, fmt.Errorf("%s has no meta", object.ProtoReflect().Descriptor().Name())
	}
	kind := string(object.ProtoReflect().Descriptor().Name())
	at := placeOf(have.GetMeta(), references(object))
	r, err := resourceOf(object, at)
	if err != nil {
		return nil, err
	}
	writeMeta(r, have.GetMeta(), at)
	if with, ok := statusOf(object).(interface{ GetConditions() []*pb.Condition }); ok {
		r.Common().Conditions = Conditions(with.GetConditions())
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = APIVersion, kind
	if spec, ok := fields["spec"].(map[string]any); ok {
		for _, field := range operatorOnly[kind] {
			delete(spec, field)
		}
	}
	if status, ok := fields["status"].(map[string]any); ok && kind == "GatewayPool" {
		delete(status, "updatedReplicas") // it counts pods
	}
	prune(fields)
	return fields, nil
}

// prune removes fields that Go writes without a value: creationTimestamp: null, and references to Secrets without a name.
func prune(fields map[string]any) {
	for name, value := range fields {
		inner, _ := value.(map[string]any)
		prune(inner)
		unnamed := strings.HasSuffix(strings.ToLower(name), "secretref") && (inner["name"] == "" || inner["name"] == nil)
		if value == nil || unnamed {
			delete(fields, name)
		}
	}
}

// resourceKey is an object's namespace and name as a resource.
type resourceKey struct{ types.NamespacedName }

// placeOf returns the resource from which the operator made an object, if it did and the object refers only to others of that
// namespace. Any other object has its complete name and no namespace, so that it keeps its name when it is read.
func placeOf(meta *pb.ObjectMeta, references []string) resourceKey {
	namespace, name, namespaced := strings.Cut(meta.GetLabels()[LabelResource], "/")
	if !namespaced || NameIn(namespace, name) != meta.GetName() {
		return resourceKey{types.NamespacedName{Name: meta.GetName()}}
	}
	for _, reference := range references {
		if !strings.HasPrefix(reference, namespace+".") {
			return resourceKey{types.NamespacedName{Name: meta.GetName()}}
		}
	}
	return resourceKey{types.NamespacedName{Namespace: namespace, Name: name}}
}

// relative returns the name with which a resource at this place refers to another object.
func (p resourceKey) relative(name string) string {
	if p.Namespace == "" {
		return name
	}
	return strings.TrimPrefix(name, p.Namespace+".")
}

// references returns the names of namespaced objects in a specification.
func references(object proto.Message) []string {
	var names []string
	switch o := object.(type) {
	case *pb.Volume:
		names = append(names, o.GetSpec().GetSource().GetSnapshot(), o.GetSpec().GetSource().GetVolume())
	case *pb.Snapshot:
		names = append(names, o.GetSpec().GetVolume())
	case *pb.Target:
		names = append(names, o.GetSpec().GetHosts()...)
		for _, lun := range o.GetSpec().GetLuns() {
			names = append(names, lun.GetVolume())
		}
	}
	given := names[:0]
	for _, name := range names {
		if name != "" {
			given = append(given, name)
		}
	}
	return given
}

func resourceOf(object proto.Message, at resourceKey) (v1alpha1.Resource, error) {
	switch o := object.(type) {
	case *pb.Volume:
		return volumeOf(o, at), nil
	case *pb.Target:
		return targetOf(o, at), nil
	case *pb.Host:
		return hostOf(o), nil
	case *pb.Snapshot:
		return snapshotOf(o, at), nil
	case *pb.GatewayPool:
		return gatewayPoolOf(o), nil
	case *pb.Gateway:
		return gatewayOf(o)
	case *pb.StoragePool:
		return storagePoolOf(o), nil
	case *pb.Fabric:
		return fabricOf(o), nil
	}
	return nil, fmt.Errorf("there is no resource of a %s", object.ProtoReflect().Descriptor().Name())
}

func statusOf(object proto.Message) any {
	message := object.ProtoReflect()
	return message.Get(message.Descriptor().Fields().ByName("status")).Message().Interface()
}

func writeMeta(r v1alpha1.Resource, meta *pb.ObjectMeta, at resourceKey) {
	r.SetNamespace(at.Namespace)
	r.SetName(at.Name)
	r.SetUID(types.UID(meta.GetUid()))
	r.SetResourceVersion(strconv.FormatInt(meta.GetResourceVersion(), 10))
	r.SetGeneration(meta.GetGeneration())
	r.SetLabels(meta.GetLabels())
	if meta.GetCreateTime() != nil {
		r.SetCreationTimestamp(metav1.NewTime(meta.GetCreateTime().AsTime()))
	}
	if meta.GetDeleteTime() != nil {
		deleted := metav1.NewTime(meta.GetDeleteTime().AsTime())
		r.SetDeletionTimestamp(&deleted)
	}
}

// Conditions converts conditions of the API to those of resources.
func Conditions(all []*pb.Condition) []metav1.Condition {
	var shown []metav1.Condition
	for _, c := range all {
		shown = append(shown, metav1.Condition{Type: c.GetType(), Status: ConditionStatus(c.GetStatus()), Reason: c.GetReason(),
			Message: c.GetMessage(), ObservedGeneration: c.GetObservedGeneration(),
			LastTransitionTime: metav1.NewTime(c.GetLastTransitionTime().AsTime())})
	}
	return shown
}

// ConditionStatus converts the status of a condition to that of resources.
func ConditionStatus(status pb.ConditionStatus) metav1.ConditionStatus {
	switch status {
	case pb.ConditionStatus_CONDITION_STATUS_TRUE:
		return metav1.ConditionTrue
	case pb.ConditionStatus_CONDITION_STATUS_FALSE:
		return metav1.ConditionFalse
	}
	return metav1.ConditionUnknown
}
