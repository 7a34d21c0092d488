package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// annotationTemplate on a pod has the digest of the template from which it was made.
const annotationTemplate = "sluice.dev/template"

// Paths inside a gateway's container.
const (
	statePath = "/var/lib/sluice"
	// The gateway's default for --device-records, on the node.
	deviceRecordsPath = "/var/lib/sluice/devices"
	tlsPath           = "/etc/sluice/tls"
)

// ownerReads is the mode of secret files: r--------.
const ownerReads int32 = 0o400

// endGrace is the time, in seconds, in which a gateway must hand over its volumes (R7), ask its initiators to log out, and
// complete commands in flight. Each step has a separate bound; together they take up to 20 s.
const endGrace int64 = 30

// Digest returns a digest of everything from which a gateway's pod is made: if it changes, the pod is replaced.
func Digest(spec *v1alpha1.GatewaySpec) string {
	made, err := json.Marshal([]any{spec.Template, spec.Portals, spec.Node})
	if err != nil {
		panic(err) // these types can always be encoded
	}
	sum := sha256.Sum256(made)
	return hex.EncodeToString(sum[:8])
}

// render returns the gateway's pod, with the spread constraints of its pool.
func (g *gateways) render(r *v1alpha1.Gateway, spread []corev1.TopologySpreadConstraint) *corev1.Pod {
	template := &r.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: r.Name,
			Labels: map[string]string{
				"app.kubernetes.io/name": "sluice-gateway", v1alpha1.LabelGateway: r.Name, v1alpha1.LabelGatewayPool: r.Spec.GatewayPool,
			},
			Annotations: map[string]string{annotationTemplate: Digest(&r.Spec)},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(r, v1alpha1.GroupVersion.WithKind("Gateway")),
			},
		},
		Spec: corev1.PodSpec{
			HostNetwork: template.Network == v1alpha1.NetworkHost, NodeSelector: template.NodeSelector,
			Tolerations: template.Tolerations, PriorityClassName: template.PriorityClassName,
			ImagePullSecrets: template.ImagePullSecrets, AutomountServiceAccountToken: new(bool),
			TopologySpreadConstraints:     spread,
			TerminationGracePeriodSeconds: new(endGrace), RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{g.container(r)},
		},
	}
	if user := runsAs(template); user != 0 { // its key and its state directory belong to the group
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &user}
	}
	if pod.Spec.HostNetwork {
		pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	g.apart(r, pod)
	if r.Spec.Node != "" {
		pin(pod, r.Spec.Node)
	}
	g.volumes(r, pod)
	if template.Network == v1alpha1.NetworkMultus {
		var networks []string
		for _, portal := range r.Spec.Portals {
			networks = append(networks, qualified(g.Namespace, portal.NetworkAttachment))
		}
		pod.Annotations[annotationNetworks] = strings.Join(networks, ",")
	}
	return pod
}

func (g *gateways) container(r *v1alpha1.Gateway) corev1.Container {
	template := &r.Spec.Template
	arguments := []string{"--gateway-name", r.Name, "--node", "$(NODE_NAME)", "--state-dir", statePath,
		"--admin-socket", statePath + "/gateway.sock", "--metrics", fmt.Sprintf("$(POD_IP):%d", template.MetricsPort)}
	for _, replica := range g.ControlPlane {
		arguments = append(arguments, "--control-plane", replica)
	}
	if g.Insecure {
		arguments = append(arguments, "--insecure-loopback")
	} else {
		arguments = append(arguments, "--tls-ca", tlsPath+"/ca.crt", "--tls-cert", tlsPath+"/tls.crt", "--tls-key", tlsPath+"/tls.key")
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	container := corev1.Container{
		Name: "gateway", Image: template.Image, ImagePullPolicy: template.ImagePullPolicy,
		Command: []string{"sluice-gateway"}, Args: arguments, Resources: template.Resources,
		Env:             []corev1.EnvVar{field("NODE_NAME", "spec.nodeName"), field("POD_IP", "status.podIP")},
		SecurityContext: g.security(template),
	}
	container.Ports = append(container.Ports,
		corev1.ContainerPort{Name: "metrics", ContainerPort: template.MetricsPort, Protocol: corev1.ProtocolTCP})
	return container
}

// security removes the privileges that a gateway does not need. As root it may lock memory beyond the limit of the container
// runtime. Another user has no capability, because an added capability is effective for root only.
func (g *gateways) security(template *v1alpha1.GatewayTemplate) *corev1.SecurityContext {
	context := &corev1.SecurityContext{SeccompProfile: g.filter(template), ReadOnlyRootFilesystem: new(true)}
	if template.BlockDevices {
		context.Privileged = new(true)
		return context
	}
	context.AllowPrivilegeEscalation = new(false)
	context.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	if user := runsAs(template); user != 0 {
		context.RunAsNonRoot, context.RunAsUser, context.RunAsGroup = new(true), &user, &user
	} else {
		context.Capabilities.Add = []corev1.Capability{"IPC_LOCK"}
	}
	return context
}

// filter returns the pool's seccomp profile; without one, the profile that the installation puts on nodes.
func (g *gateways) filter(template *v1alpha1.GatewayTemplate) *corev1.SeccompProfile {
	switch {
	case template.SeccompProfile != nil:
		return template.SeccompProfile
	case g.SeccompProfile != "":
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &g.SeccompProfile}
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
}

// unprivilegedUser is the user of gateways that need no file of the node.
const unprivilegedUser int64 = 65532

// runsAs returns the user id of a gateway: the node's directories and devices belong to root unless the pool names another user.
func runsAs(template *v1alpha1.GatewayTemplate) int64 {
	switch {
	case template.BlockDevices:
		return 0
	case template.RunAsUser != nil:
		return *template.RunAsUser
	case len(template.LocalDirectories) > 0:
		return 0
	}
	return unprivilegedUser
}

// apart keeps gateways of a pool on different nodes: on one node they would fail together, and compete for ports on the host
// network.
func (g *gateways) apart(r *v1alpha1.Gateway, pod *corev1.Pod) {
	term := corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{v1alpha1.LabelGatewayPool: r.Spec.GatewayPool},
		},
	}
	affinity := &corev1.PodAntiAffinity{}
	if pod.Spec.HostNetwork {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	} else {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}}
	}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: affinity}
}

// pin keeps a pod on a node through the scheduler, so that the node's taints and cordon are respected.
func pin(pod *corev1.Pod, node string) {
	pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}
	// A gateway that takes over a local volume's lock may have to kill the process that holds it (R2), so gateways must see each
	// other's processes.
	pod.Spec.HostPID = true
}

func (g *gateways) volumes(r *v1alpha1.Gateway, pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	add := func(name, path string, from corev1.VolumeSource, readOnly bool) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: from})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	// The control plane stores reservations, and records are beside the data: nothing here must outlive the pod.
	add("state", statePath, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false)
	if !g.Insecure {
		// A gateway refuses a key that other users can read.
		add("tls", tlsPath, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secretName(r.Name), DefaultMode: new(ownerReads)}}, true)
	}
	directory := corev1.HostPathDirectory
	for i, path := range r.Spec.Template.LocalDirectories {
		add(fmt.Sprintf("local-%d", i), path, corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &directory}}, false)
	}
	if r.Spec.Template.BlockDevices {
		add("devices", "/dev", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev", Type: &directory}}, false)
		// The records of volumes on devices outlive the pod, and all gateways of the node share them.
		made := corev1.HostPathDirectoryOrCreate
		add("device-records", deviceRecordsPath, corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: deviceRecordsPath, Type: &made}}, false)
	}
}
