package mirror

import (
	"context"
	"maps"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons of the condition Ready that this package sets.
const (
	ReasonNameTaken = "NameTaken"
	ReasonLost      = "Lost"
)

// put creates or updates the object, unless it already equals the wanted one.
func (m *Mirror[R, P]) put(ctx context.Context, r R, have, want P, versions string) (P, error) {
	proto.Merge(metaOf(want), meta(r))
	was := r.Common().ControlPlane
	if isNil(have) {
		if was != nil && m.HoldsData {
			return have, Problemf(ReasonLost, "%s %s (uid %s) was deleted in the control plane, and its data with it: a new, empty "+
				"one is not made in its place. Delete this resource and make a new one", m.Noun.Kind, was.Name, was.UID)
		}
		made, err := m.Noun.Create(ctx, want)
		if err != nil {
			return have, err
		}
		m.recordEvent(r, corev1.EventTypeNormal, "Created", "made in the control plane as "+made.GetMeta().GetName())
		m.recordSent(r, made, versions)
		return made, nil
	}
	if err := m.own(r, have); err != nil {
		var none P // it belongs to another resource: nothing of it is shown
		return none, err
	}
	if have.GetMeta().GetDeleteTime() != nil {
		return have, Problemf("BeingDeleted", "%s %s is being deleted in the control plane; it is created again once it is gone",
			m.Noun.Kind, Name(r))
	}
	if !m.differs(r, have, want, versions) {
		m.recordSent(r, have, versions)
		return have, nil
	}
	labels := maps.Clone(have.GetMeta().GetLabels()) // others may have set labels
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetMeta().GetLabels())
	metaOf(want).Labels = labels
	metaOf(want).ResourceVersion = have.GetMeta().GetResourceVersion()
	changed, err := m.Noun.Update(ctx, want)
	if err != nil {
		return have, err
	}
	if was != nil && r.Common().ObservedGeneration == r.GetGeneration() {
		m.recordEvent(r, corev1.EventTypeNormal, "Repaired", "the control plane's object was not as this resource says; it is again")
	}
	m.recordSent(r, changed, versions)
	return changed, nil
}

// own returns an error unless the object belongs to this resource: it has the resource's uid, or the user names its uid for
// adoption.
func (m *Mirror[R, P]) own(r R, have P) error {
	head := have.GetMeta()
	if head.GetLabels()[labelUID] == string(r.GetUID()) {
		was := r.Common().ControlPlane
		if was != nil && was.UID != head.GetUid() && m.HoldsData {
			return Problemf(ReasonLost, "%s %s is another one than before (uid %s, before %s): its data is not what was there. "+
				"Annotate %s=%s if that is meant", m.Noun.Kind, head.GetName(), head.GetUid(), was.UID,
				v1alpha1.AnnotationAdopt, head.GetUid())
		}
		return nil
	}
	if r.GetAnnotations()[v1alpha1.AnnotationAdopt] == head.GetUid() {
		m.recordEvent(r, corev1.EventTypeNormal, "Adopted", "took over the control plane's object with the uid "+head.GetUid())
		return nil
	}
	owner := "someone without a resource, as with sluicectl"
	if other := head.GetLabels()[labelResource]; other != "" {
		owner = "another resource, " + other + " (uid " + head.GetLabels()[labelUID] + ")"
	}
	return Problemf(ReasonNameTaken, "the control plane has a %s %s (uid %s), made by %s. To take it over annotate this resource "+
		"with %s=%s; else take another name", m.Noun.Kind, head.GetName(), head.GetUid(), owner,
		v1alpha1.AnnotationAdopt, head.GetUid())
}

// differs reports whether the object is not as wanted. Secrets cannot be read back: they are sent again if their Secrets have
// changed, or if another client has changed the object.
func (m *Mirror[R, P]) differs(r R, have, want P, versions string) bool {
	for key, value := range want.GetMeta().GetLabels() {
		if have.GetMeta().GetLabels()[key] != value {
			return true
		}
	}
	if m.SecretVersions != nil {
		was := r.Common().ControlPlane
		if *m.SecretVersions(r) != versions || was == nil || was.Generation != have.GetMeta().GetGeneration() {
			return true
		}
	}
	shown := want
	if m.Hide != nil {
		shown = proto.Clone(want).(P)
		m.Hide(shown)
	}
	return !proto.Equal(specOf(shown), specOf(have))
}

// recordSent records in the status the object that the control plane has.
func (m *Mirror[R, P]) recordSent(r R, have P, versions string) {
	common, head := r.Common(), have.GetMeta()
	common.ObservedGeneration = r.GetGeneration()
	common.ControlPlane = &v1alpha1.ControlPlaneObject{
		Name: head.GetName(), UID: head.GetUid(), Generation: head.GetGeneration(),
	}
	if m.SecretVersions != nil {
		*m.SecretVersions(r) = versions
	}
}

func specOf(object Object) proto.Message {
	message := object.ProtoReflect()
	return message.Get(message.Descriptor().Fields().ByName("spec")).Message().Interface()
}

// metaOf returns the metadata of an object for writing; every message has it.
func metaOf(object Object) *pb.ObjectMeta {
	message := object.ProtoReflect()
	return message.Mutable(message.Descriptor().Fields().ByName("meta")).Message().Interface().(*pb.ObjectMeta)
}
