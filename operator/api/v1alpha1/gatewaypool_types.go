package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayPoolSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="self.placement != 'Pinned' || self.template.network == 'HostNetwork'",message="pinned gateways use the host network: their node's addresses are theirs",fieldPath=".template.network"
// +kubebuilder:validation:XValidation:rule="self.template.network != 'Multus' || self.portals.all(p, has(p.networkAttachment))",message="with Multus each portal names its networkAttachment",fieldPath=".portals"
// +kubebuilder:validation:XValidation:rule="self.template.network == 'Multus' || self.portals.all(p, !has(p.networkAttachment))",message="networkAttachment is for the network Multus",fieldPath=".portals"
type GatewayPoolSpec struct {
	// Number of gateways, 0 to 1000. If it is reduced, the last ones are drained and then deleted, one at a time.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas int32 `json:"replicas"`
	// Floating: a gateway runs on any node that the scheduler selects, which is possible for volumes in Ceph. Pinned: each stays
	// on one node, which volumes on a node's own disks require. Immutable.
	// +optional
	// +kubebuilder:default=Floating
	// +kubebuilder:validation:Enum=Floating;Pinned
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="placement is immutable: make a new GatewayPool"
	Placement Placement `json:"placement,omitempty"`
	// Concurrent sessions of hosts on one gateway, 1 to 65536. A gateway refuses a further login (RFC 7143 §11.13.5, status
	// 0302). A gateway never has more than 4096 connections of hosts.
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxSessionsPerGateway int32 `json:"maxSessionsPerGateway,omitempty"`
	// Portals of each gateway, 1 to 16, one for each fabric. Their fabrics are immutable, because a gateway's portal group tags
	// are assigned with it.
	// +listType=map
	// +listMapKey=fabric
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.size() == oldSelf.size() && self.all(p, oldSelf.exists(o, o.fabric == p.fabric))",message="the fabrics of a pool are immutable: make a new GatewayPool"
	Portals []PortalTemplate `json:"portals"`
	// Template of each gateway's pod. A change is rolled out one gateway at a time; each is drained first.
	Template GatewayTemplate `json:"template"`
	// How changes are rolled out.
	// +optional
	Rollout Rollout `json:"rollout,omitempty"`
}

// Placement decides whether gateways stay on a node.
type Placement string

// The placements.
const (
	PlacementFloating Placement = "Floating"
	PlacementPinned   Placement = "Pinned"
)

// PortalTemplate is one portal of each gateway of a pool.
type PortalTemplate struct {
	// Fabric of the portal.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Fabric string `json:"fabric"`
	// TCP port on which it listens, 1024 to 65535.
	// +optional
	// +kubebuilder:default=3260
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Multus: NetworkAttachmentDefinition whose interface the portal uses, as `<namespace>/<name>`, or `<name>` in the gateways'
	// namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	NetworkAttachment string `json:"networkAttachment,omitempty"`
	// LoadBalancer: annotations of each gateway's Service, as load balancers require.
	// +optional
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
	// LoadBalancer: class of each gateway's Service; unset: the cluster's own. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
}

// GatewayTemplate is the template of a gateway's pod.
type GatewayTemplate struct {
	// Image that contains sluice-gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// Secrets for the image's registry, in the gateways' namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// HostNetwork: portals are addresses of the node. Multus: portals are addresses of networks that are attached to the pod.
	// LoadBalancer: a Service for each gateway and fabric, whose address hosts are given.
	// +optional
	// +kubebuilder:default=HostNetwork
	// +kubebuilder:validation:Enum=HostNetwork;Multus;LoadBalancer
	Network Network `json:"network,omitempty"`
	// Port of the forwarding between gateways, on the cluster network, 1024 to 65535.
	// +optional
	// +kubebuilder:default=3261
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	ForwardingPort int32 `json:"forwardingPort,omitempty"`
	// Port of metrics, 1024 to 65535.
	// +optional
	// +kubebuilder:default=7462
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	MetricsPort int32 `json:"metricsPort,omitempty"`
	// Labels of nodes on which gateways may run.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Directories of the node that local pools use. The pod has each under the same path.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^(/[^/]+)+$`
	LocalDirectories []string `json:"localDirectories,omitempty"`
	// Local pools use block devices: the pod has the node's /dev, which requires a privileged container.
	// +optional
	BlockDevices bool `json:"blockDevices,omitempty"`
	// User id of the gateway's process, 0 to 2147483647; its group id is the same number. Unset: 65532 where localDirectories is
	// empty and blockDevices is false, else 0 (root). Another user than root has to own the local directories and all that is in
	// them, on each node, and all gateways of a node run as the same user: one gateway may have to end another one. Block devices
	// take root.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// The filter of system calls (seccomp). It has to permit io_uring, which many runtimes' own profile does not. Unset: the
	// profile that the operator was started with (--gateway-seccomp-profile, which the chart sets), else no filter.
	// +optional
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`
}

// Network decides how a gateway's portals get their addresses.
type Network string

// The networks.
const (
	NetworkHost         Network = "HostNetwork"
	NetworkMultus       Network = "Multus"
	NetworkLoadBalancer Network = "LoadBalancer"
)

// Rollout controls how changes are rolled out.
type Rollout struct {
	// While it is set no step begins: no gateway gets a new template, and none is drained because of its node.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Continue although a target of the pool has fewer paths than it wants, or a gateway has volumes that no other one can serve.
	// These are unavailable while its pod is replaced. Hosts may lose their last path.
	// +optional
	IgnoreRedundancy bool `json:"ignoreRedundancy,omitempty"`
}

// GatewayPoolStatus is the observed state.
type GatewayPoolStatus struct {
	CommonStatus `json:",inline"`
	// Number of gateways that exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// Number of them that serve.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// Number of them that have the newest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// Label selector of the gateways' pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// Largest load of a gateway, divided by the mean, times 1000.
	// +optional
	ImbalancePermille int32 `json:"imbalancePermille,omitempty"`
}

// GatewayPool is a set of gateways that export the same targets.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Cluster,shortName=sgwp,categories=sluice
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Present",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50",message="a pool's name has at most 50 characters: gateways and their pods are named after it"
type GatewayPool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GatewayPoolSpec `json:"spec"`
	// +optional
	Status GatewayPoolStatus `json:"status,omitempty"`
}

// GatewayPoolList is a list of GatewayPools.
// +kubebuilder:object:root=true
type GatewayPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayPool `json:"items"`
}
