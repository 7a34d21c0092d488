package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Ports of the programs (DESIGN §7). The second gateway of a server adds portStep to those of the first.
const (
	portalPort       = 3260
	forwardingPort   = 3261
	controlPlanePort = 7460
	controlMetrics   = 7461
	peerPort         = 7467
	joinPort         = 7468
	gatewayMetrics   = 7462
	portStep         = 10
	gatewaysPerNode  = 2
)

// JoinPort is the port of the service at which servers join.
const JoinPort = "7468"

// DefaultFabric is the name of the fabric of a node that names none.
const DefaultFabric = "default"

// gatewayPool is the gateway pool of all nodes. `disk create` uses it.
const gatewayPool = "default"

var loopback = netip.MustParseAddr("127.0.0.1")

// Plan is how a server becomes a node. It is stored in RecordFile, so that a later run continues it.
type Plan struct {
	// Name of the node; its gateways are NAME-1 and NAME-2.
	Name string `json:"name"`
	// Address for control plane and gateways.
	Address string `json:"address"`
	// Pools are directories, each for a local pool.
	Pools []string `json:"pools,omitempty"`
	// Fabrics are by name; each has the address of this server and the subnet, as 192.0.2.1/24.
	Fabrics map[string]string `json:"fabrics"`
	// Member: the control plane of this server is a member of the embedded etcd.
	Member bool `json:"member"`
	// Joined is the address of the system that this server has joined; empty: it founded the system, or has not joined yet.
	Joined string `json:"joined,omitempty"`
	// ControlPlanes are the addresses of the control planes on other servers.
	ControlPlanes []string `json:"controlPlanes,omitempty"`
	// Members are the peer addresses of the other members of the embedded etcd. A server that lost its data then founds no second system.
	Members []string `json:"members,omitempty"`
}

// address returns the parsed address. It is valid in a plan that Preflight made.
func (p *Plan) address() netip.Addr {
	parsed, _ := netip.ParseAddr(p.Address)
	return parsed
}

// gateway is one of the gateways of a node.
type gateway struct {
	name       string
	portal     uint16
	portals    map[string]netip.AddrPort
	forwarding netip.AddrPort
	metrics    netip.AddrPort
}

func (g *gateway) unit() string { return "sluice-gateway@" + g.name + ".service" }

func (p *Plan) gateways() []gateway {
	all := make([]gateway, gatewaysPerNode)
	for i := range all {
		step := uint16(i * portStep)
		all[i] = gateway{
			name:       fmt.Sprintf("%s-%d", p.Name, i+1),
			portal:     portalPort + step,
			portals:    map[string]netip.AddrPort{},
			forwarding: netip.AddrPortFrom(p.address(), forwardingPort+step),
			metrics:    netip.AddrPortFrom(loopback, gatewayMetrics+step),
		}
		for fabric, text := range p.Fabrics {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				all[i].portals[fabric] = netip.AddrPortFrom(prefix.Addr(), all[i].portal)
			}
		}
	}
	return all
}

// endpoints are the addresses of all control planes, that of this server first.
func (p *Plan) endpoints() []string {
	if !p.Member {
		return p.ControlPlanes
	}
	return append([]string{p.controlPlane().String()}, p.ControlPlanes...)
}

func (p *Plan) controlPlane() netip.AddrPort {
	return netip.AddrPortFrom(p.address(), controlPlanePort)
}

// poolName returns the name of the local pool in a directory: local-NODE, then local-NODE-2 and so on.
func (p *Plan) poolName(i int) string {
	if i == 0 {
		return "local-" + p.Name
	}
	return fmt.Sprintf("local-%s-%d", p.Name, i+1)
}

func (p *Plan) fabricNames() []string {
	var names []string
	for name := range p.Fabrics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fabricObjects are the fabrics, each with its subnet.
func (p *Plan) fabricObjects() []*pb.Fabric {
	var all []*pb.Fabric
	for _, name := range p.fabricNames() {
		prefix, _ := netip.ParsePrefix(p.Fabrics[name])
		all = append(all, &pb.Fabric{Meta: &pb.ObjectMeta{Name: name}, Spec: &pb.FabricSpec{Subnets: []string{prefix.Masked().String()}}})
	}
	return all
}

func (p *Plan) gatewayObjects() []*pb.Gateway {
	var all []*pb.Gateway
	for _, one := range p.gateways() {
		spec := &pb.GatewaySpec{GatewayPool: gatewayPool, Node: p.Name, ForwardingAddress: one.forwarding.String()}
		for _, fabric := range p.fabricNames() {
			spec.Portals = append(spec.Portals, &pb.Portal{Fabric: fabric, Listen: one.portals[fabric].String()})
		}
		all = append(all, &pb.Gateway{Meta: &pb.ObjectMeta{Name: one.name}, Spec: spec})
	}
	return all
}

func (p *Plan) poolObjects() []*pb.StoragePool {
	var all []*pb.StoragePool
	for i, directory := range p.Pools {
		local := &pb.LocalPool{Node: p.Name, Directory: directory}
		all = append(all, &pb.StoragePool{Meta: &pb.ObjectMeta{Name: p.poolName(i)},
			Spec: &pb.StoragePoolSpec{Kind: &pb.StoragePoolSpec_Local{Local: local}}})
	}
	return all
}

// wrongName returns why a node cannot have a name; "": it can.
func wrongName(name string) string { return strings.Join(validation.IsDNS1123Label(name), "; ") }
