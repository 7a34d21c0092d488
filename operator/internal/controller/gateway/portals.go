package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// gatewayLocation is a gateway's node and its addresses.
type gatewayLocation struct {
	node       string
	portals    []*pb.Portal
	forwarding string
}

const reasonNoAddress = "NoAddress"

// location returns the addresses of a gateway; nil if its pod does not have them yet.
func (g *gateways) location(ctx context.Context, r *v1alpha1.Gateway, pod *corev1.Pod) (*gatewayLocation, error) {
	if pod == nil || pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := g.client.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, mirror.Problemf(reasonNoAddress, "pod %s runs on node %s, which is not there", pod.Name, pod.Spec.NodeName)
		}
		return nil, err
	}
	inside := pod.Status.PodIP
	if pod.Spec.HostNetwork {
		inside = internalAddress(node)
	}
	if inside == "" {
		return nil, nil
	}
	at := &gatewayLocation{node: node.Name, forwarding: convert.HostPort(inside, r.Spec.Template.ForwardingPort)}
	for _, wanted := range r.Spec.Portals {
		portal, err := g.portal(ctx, r, wanted, pod, node)
		if err != nil || portal == nil {
			return nil, err
		}
		portal.Fabric, portal.Switch = wanted.Fabric, switchOf(node, wanted.Fabric)
		at.portals = append(at.portals, portal)
	}
	return at, nil
}

// portal returns the listen and advertised addresses of one portal; nil: not known yet.
func (g *gateways) portal(ctx context.Context, r *v1alpha1.Gateway, wanted v1alpha1.PortalTemplate, pod *corev1.Pod, node *corev1.Node,
) (*pb.Portal, error) {
	switch r.Spec.Template.Network {
	case v1alpha1.NetworkMultus:
		address, err := attached(pod, g.Namespace, wanted.NetworkAttachment)
		if err != nil || address == "" {
			return nil, err
		}
		return same(convert.HostPort(address, wanted.Port)), nil
	case v1alpha1.NetworkLoadBalancer:
		advertised, err := g.balanced(ctx, r, wanted)
		if err != nil || advertised == "" {
			return nil, err
		}
		return &pb.Portal{Listen: convert.HostPort(pod.Status.PodIP, wanted.Port), Advertised: advertised}, nil
	}
	address, err := g.nodeAddress(ctx, node, wanted.Fabric)
	if err != nil {
		return nil, err
	}
	portal := same(convert.HostPort(address, wanted.Port))
	if outside := node.Annotations[v1alpha1.AnnotationAdvertised+wanted.Fabric]; outside != "" {
		portal.Advertised = convert.Advertised(outside, wanted.Port)
	}
	return portal, nil
}

func same(address string) *pb.Portal { return &pb.Portal{Listen: address, Advertised: address} }

func internalAddress(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// nodeAddress returns a node's address on a fabric: the annotated one, else one in the fabric's subnets, else, if the fabric has
// none, the node's internal address.
func (g *gateways) nodeAddress(ctx context.Context, node *corev1.Node, name string) (string, error) {
	if address := node.Annotations[v1alpha1.AnnotationListen+name]; address != "" {
		return address, nil
	}
	fabric := &v1alpha1.Fabric{}
	if err := g.client.Get(ctx, types.NamespacedName{Name: name}, fabric); err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if len(fabric.Spec.Subnets) == 0 {
		if address := internalAddress(node); address != "" {
			return address, nil
		}
	}
	var has []string
	for _, address := range node.Status.Addresses {
		ip, err := netip.ParseAddr(address.Address)
		if err != nil {
			continue
		}
		has = append(has, address.Address)
		for _, subnet := range fabric.Spec.Subnets {
			if prefix, err := netip.ParsePrefix(subnet); err == nil && prefix.Contains(ip) {
				return address.Address, nil
			}
		}
	}
	return "", mirror.Problemf(reasonNoAddress, "node %s has no address on fabric %s: none of its addresses (%s) is in a subnet of it "+
		"(%s). Annotate the node with %s%s=<its address there>", node.Name, name, strings.Join(has, ", "),
		strings.Join(fabric.Spec.Subnets, ", "), v1alpha1.AnnotationListen, name)
}

// annotationNetworks requests networks from Multus; annotationNetworkStatus has its answer.
const (
	annotationNetworks      = "k8s.v1.cni.cncf.io/networks"
	annotationNetworkStatus = "k8s.v1.cni.cncf.io/network-status"
)

// attached returns a pod's address on a network that Multus has attached; empty: not known yet.
func attached(pod *corev1.Pod, namespace, attachment string) (string, error) {
	text := pod.Annotations[annotationNetworkStatus]
	if text == "" {
		return "", nil
	}
	var networks []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if err := json.Unmarshal([]byte(text), &networks); err != nil {
		return "", mirror.Problemf(reasonNoAddress, "pod %s: the annotation %s is not what Multus writes: %v", pod.Name,
			annotationNetworkStatus, err)
	}
	name := qualified(namespace, attachment)
	for _, network := range networks {
		if network.Name == name && len(network.IPs) > 0 {
			return network.IPs[0], nil
		}
	}
	return "", mirror.Problemf(reasonNoAddress, "pod %s has no address on the network %s: is there a NetworkAttachmentDefinition of "+
		"that name, with an address management (ipam)?", pod.Name, name)
}

func qualified(namespace, attachment string) string {
	if strings.Contains(attachment, "/") {
		return attachment
	}
	return fmt.Sprintf("%s/%s", namespace, attachment)
}
