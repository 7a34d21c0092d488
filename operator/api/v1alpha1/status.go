package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Types of conditions.
const (
	// ConditionReady reports whether the object is in use as specified.
	ConditionReady = "Ready"
	// ConditionHealthy reports whether the control plane finds a fault of the object: a warning or a critical finding. Its reason is the
	// finding (docs/RUNBOOK.md). A critical finding also makes ConditionReady false.
	ConditionHealthy = "Healthy"
	// ConditionProgressing reports whether an operation is in progress or waits.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports that the object works, but with a problem.
	ConditionDegraded = "Degraded"
	// ConditionPathsRedundant reports that no single failure takes all paths of a host.
	ConditionPathsRedundant = "PathsRedundant"
	// ConditionRolledBack on a Snapshot reports whether its volume was rolled back to the snapshot, as a user requested.
	ConditionRolledBack = "RolledBack"
)

// Annotations that a user may set.
const (
	// AnnotationAdopt on a resource names, by uid, the object of the control plane that the resource adopts. Another client made
	// that object under the name that the resource has there.
	AnnotationAdopt = "sluice.dev/adopt"
	// AnnotationAbandon set to "true" releases a resource that is being deleted at once. Its object stays in the control plane
	// (and a gateway's pod ends without a drain); an administrator must remove it.
	AnnotationAbandon = "sluice.dev/abandon"
	// AnnotationRollBack on a Snapshot rolls its volume back to the snapshot, once. The value is the volume's epoch, from its
	// status, which states the content that may be discarded. Once a host can have written again, the volume has another epoch,
	// and the same annotation has no effect.
	AnnotationRollBack = "sluice.dev/roll-back"
)

// Finalizer keeps a resource until the control plane has deleted its object.
const Finalizer = "sluice.dev/control-plane"

// CommonStatus is the part of a status that is the same for every kind.
type CommonStatus struct {
	// Generation of the resource that the control plane received last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Object of the resource in the control plane.
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
	// Unique id there, a UUID, never reused.
	UID string `json:"uid"`
	// Generation there that the operator read last. A different one means that another client has changed the object.
	Generation int64 `json:"generation"`
}

// Resource is a custom resource of any kind.
// +kubebuilder:object:generate=false
type Resource interface {
	metav1.Object
	runtime.Object
	// Common returns the part of the status that every kind has.
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
