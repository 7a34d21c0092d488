// Package v1alpha1 has the custom resources of Sluice: what a user writes, with its rules, and what the operator
// reports. The kinds and their fields are those of the control plane's API (proto/sluice/v1).
// +kubebuilder:object:generate=true
// +groupName=sluice.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of these resources.
var GroupVersion = schema.GroupVersion{Group: "sluice.dev", Version: "v1alpha1"}

// AddToScheme teaches a scheme these resources.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Volume{}, &VolumeList{}, &Target{}, &TargetList{}, &Host{}, &HostList{}, &Snapshot{}, &SnapshotList{},
		&GatewayPool{}, &GatewayPoolList{}, &Gateway{}, &GatewayList{}, &StoragePool{}, &StoragePoolList{},
		&Fabric{}, &FabricList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
