package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Types of conditions.
const (
	// ConditionReady says that the object is in use as it is written.
	ConditionReady = "Ready"
	// ConditionProgressing says that something is under way, or waited for.
	ConditionProgressing = "Progressing"
	// ConditionDegraded says that it works, but not as well as it should.
	ConditionDegraded = "Degraded"
	// ConditionPathsRedundant says that no single failure takes all paths of a host.
	ConditionPathsRedundant = "PathsRedundant"
	// ConditionRolledBack on a Snapshot says that its volume is what it was at the snapshot, as somebody has asked.
	ConditionRolledBack = "RolledBack"
)

// Annotations a user may set.
const (
	// AnnotationAdopt on a resource names, by uid, the object of the control plane that shall become its own, made by
	// someone else under the name that the resource has there.
	AnnotationAdopt = "sluice.dev/adopt"
	// AnnotationAbandon set to "true" lets a resource that is being deleted go at once. What it stands for stays in the
	// control plane (and a gateway's pod goes undrained), for a person to look after.
	AnnotationAbandon = "sluice.dev/abandon"
	// AnnotationRollBack on a Snapshot has its volume made what it was at the snapshot, once. The value is the volume's epoch
	// (its status tells it), so that it says which content may go: once a host can have written again the volume has another
	// one, and the annotation, wherever it is applied again, does nothing.
	AnnotationRollBack = "sluice.dev/roll-back"
)

// Finalizer keeps a resource until the control plane has deleted what it stands for.
const Finalizer = "sluice.dev/control-plane"

// CommonStatus is the part of a status that is the same for every kind.
type CommonStatus struct {
	// Generation of the resource that the control plane was told last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// What stands for the resource in the control plane.
	// +optional
	ControlPlane *ControlPlaneObject `json:"controlPlane,omitempty"`
	// Ready, Progressing, Degraded, for a Target PathsRedundant, and for a Snapshot RolledBack.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ControlPlaneObject identifies an object of the control plane.
type ControlPlaneObject struct {
	// Name there: `<namespace>.<name>` of a namespaced resource, else the resource's own.
	Name string `json:"name"`
	// Identity there, a UUID, never reused.
	UID string `json:"uid"`
	// Generation there that the operator has seen last. Another one means that somebody else has changed the object.
	Generation int64 `json:"generation"`
}

// Resource is any of the custom resources.
// +kubebuilder:object:generate=false
type Resource interface {
	metav1.Object
	runtime.Object
	// Common is the part of the status that every kind has.
	Common() *CommonStatus
}

// Common implements Resource.
func (v *Volume) Common() *CommonStatus { return &v.Status.CommonStatus }

// Common implements Resource.
func (t *Target) Common() *CommonStatus { return &t.Status.CommonStatus }

// Common implements Resource.
func (h *Host) Common() *CommonStatus { return &h.Status.CommonStatus }

// Common implements Resource.
func (s *Snapshot) Common() *CommonStatus { return &s.Status.CommonStatus }

// Common implements Resource.
func (p *GatewayPool) Common() *CommonStatus { return &p.Status.CommonStatus }

// Common implements Resource.
func (g *Gateway) Common() *CommonStatus { return &g.Status.CommonStatus }

// Common implements Resource.
func (p *StoragePool) Common() *CommonStatus { return &p.Status.CommonStatus }

// Common implements Resource.
func (f *Fabric) Common() *CommonStatus { return &f.Status.CommonStatus }
