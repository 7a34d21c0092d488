package convert

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// GatewaySpec returns the part of a gateway's specification that the Gateway has itself. The operator takes node and addresses
// from the pod.
func GatewaySpec(r *v1alpha1.Gateway) *pb.GatewaySpec {
	return &pb.GatewaySpec{GatewayPool: r.Spec.GatewayPool, Weight: r.Spec.Weight, Cordoned: r.Spec.Cordoned}
}

// defaultPort of a portal, as in the definition of the resource.
const defaultPort = 3260

// placedGatewaySpec is GatewaySpec with node and addresses of a gateway without a pod: its node is spec.node, and its addresses
// are in its annotations, which have the names and the form of node annotations.
func placedGatewaySpec(r *v1alpha1.Gateway) (*pb.GatewaySpec, error) {
	if r.Spec.Drain || r.Spec.Maintenance {
		return nil, fmt.Errorf("spec.drain and spec.maintenance are for the operator: use `sluicectl gateway drain %s`", r.Name)
	}
	spec := GatewaySpec(r)
	spec.Node, spec.ForwardingAddress = r.Spec.Node, r.Annotations[v1alpha1.AnnotationForwarding]
	seen := map[string]int{}
	for _, portal := range r.Spec.Portals {
		// Two portals of one fabric, one of each address family, share an annotation: their values are in the order of the portals.
		nth := seen[portal.Fabric]
		seen[portal.Fabric]++
		value := func(annotation string) string {
			values := strings.Split(r.Annotations[annotation+portal.Fabric], ",")
			if nth >= len(values) {
				return ""
			}
			return strings.TrimSpace(values[nth])
		}
		listen, port := value(v1alpha1.AnnotationListen), cmp.Or(portal.Port, defaultPort)
		if listen == "" || spec.Node == "" || spec.ForwardingAddress == "" {
			return nil, fmt.Errorf("a Gateway without spec.node and addresses is one that the operator makes, in Kubernetes. Elsewhere give "+
				"spec.node and the annotations %s (host:port) and %s%s (an address of the node)", v1alpha1.AnnotationForwarding,
				v1alpha1.AnnotationListen, portal.Fabric)
		}
		made := &pb.Portal{Listen: HostPort(listen, port), Fabric: portal.Fabric, Switch: value(v1alpha1.AnnotationSwitch)}
		made.Advertised = made.Listen
		if outside := value(v1alpha1.AnnotationAdvertised); outside != "" {
			made.Advertised = Advertised(outside, port)
		}
		spec.Portals = append(spec.Portals, made)
	}
	return spec, nil
}

// Advertised returns an annotation's address in the form in which the control plane stores it: another form would differ from the
// stored one in each comparison.
func Advertised(outside string, port int32) string {
	host, text, err := net.SplitHostPort(outside)
	if err != nil {
		return HostPort(strings.ToLower(outside), port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return outside // the control plane refuses it, with the reason
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), strconv.FormatUint(number, 10))
}

// HostPort joins an address and a port; an IPv6 address may have brackets.
func HostPort(host string, port int32) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port)))
}

// ShowGateway copies the status of a gateway.
func ShowGateway(r *v1alpha1.Gateway, have *pb.Gateway) {
	s := have.GetStatus()
	r.Status.Number, r.Status.Health, r.Status.Version = int64(s.GetNumber()), Word(s.GetHealth()), s.GetVersion()
	r.Status.Sessions, r.Status.VolumesOwned = s.GetSessions(), s.GetVolumesOwned()
	r.Status.Portals = nil
	for i, portal := range have.GetSpec().GetPortals() {
		shown := v1alpha1.GatewayPortal{
			Fabric: portal.GetFabric(), Listen: portal.GetListen(), Advertised: portal.GetAdvertised(), Switch: portal.GetSwitch(),
		}
		if i < len(s.GetPortalGroupTags()) {
			shown.PortalGroupTag = int64(s.GetPortalGroupTags()[i])
		}
		r.Status.Portals = append(r.Status.Portals, shown)
	}
	slices.SortFunc(r.Status.Portals, func(a, b v1alpha1.GatewayPortal) int {
		return strings.Compare(a.Fabric, b.Fabric)
	})
}

func gatewayOf(have *pb.Gateway) (*v1alpha1.Gateway, error) {
	spec := have.GetSpec()
	r := &v1alpha1.Gateway{Spec: v1alpha1.GatewaySpec{GatewayPool: spec.GetGatewayPool(), Node: spec.GetNode(), Weight: spec.GetWeight(),
		Cordoned: spec.GetCordoned()}}
	r.Annotations = map[string]string{v1alpha1.AnnotationForwarding: spec.GetForwardingAddress()}
	ShowGateway(r, have)
	r.Status.Node = spec.GetNode()
	values := map[string][]string{}
	for _, portal := range spec.GetPortals() {
		host, text, err := net.SplitHostPort(portal.GetListen())
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, err
		}
		r.Spec.Portals = append(r.Spec.Portals, v1alpha1.PortalTemplate{Fabric: portal.GetFabric(), Port: int32(port)})
		outside := portal.GetAdvertised()
		if outside == portal.GetListen() {
			outside = ""
		}
		for annotation, value := range map[string]string{v1alpha1.AnnotationListen: host, v1alpha1.AnnotationAdvertised: outside,
			v1alpha1.AnnotationSwitch: portal.GetSwitch()} {
			values[annotation+portal.GetFabric()] = append(values[annotation+portal.GetFabric()], value)
		}
	}
	for annotation, all := range values {
		if joined := strings.Join(all, ","); strings.Trim(joined, ",") != "" {
			r.Annotations[annotation] = joined
		}
	}
	return r, nil
}
