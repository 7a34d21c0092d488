package node

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Access is how an administrator connects to the control plane of a node.
type Access struct {
	Server               string
	CA, Certificate, Key string
}

// Init makes this server the first node of a cluster.
type Init struct {
	System *System
	Plan   *Plan
	// Certificates is the directory of the certificate authority and of the certificates that it has signed.
	Certificates string
	// StoreAccess writes the access to the control plane to the administrator's configuration.
	StoreAccess func(Access) (changed bool, err error)
	// Connect connects to the control plane.
	Connect func(Access) Cluster
}

// Run runs all steps. changed: a step had something to do.
func (i *Init) Run(ctx context.Context, to io.Writer) (changed bool, err error) {
	cluster := i.Connect(i.Access())
	steps := []step{
		{what: "record the plan in " + RecordFile, run: func(context.Context) (bool, error) { return i.System.writeRecord(i.Plan) }},
		{what: "stop the gateway of the sample (" + sampleUnit + ")", run: func(ctx context.Context) (bool, error) { return i.System.stopUnit(ctx, sampleUnit) }},
	}
	for _, directory := range i.Plan.Pools {
		steps = append(steps, i.System.poolStep(directory))
	}
	steps = append(steps,
		step{what: "set the flags of the control plane in " + controlPlaneEnv, run: func(context.Context) (bool, error) {
			return i.System.setFlags(controlPlaneEnv, i.Plan.controlPlaneFlags())
		}},
		step{what: "make certificates in " + i.Certificates + " and install them in " + tlsDirectory, run: i.makeCertificates},
		step{what: "store the access of the administrator as a context of sluicectl", run: func(context.Context) (bool, error) { return i.StoreAccess(i.Access()) }},
		step{what: "start the control plane (" + controlPlaneUnit + ")", run: func(ctx context.Context) (bool, error) { return i.System.startUnit(ctx, controlPlaneUnit) }},
		i.importAuthority(cluster),
	)
	for _, object := range i.Plan.sharedObjects() {
		steps = append(steps, ensure(cluster, object))
	}
	steps = append(steps, i.System.backupStep(), i.System.renewalStep())
	steps = append(steps, i.System.nodeSteps(i.Plan, cluster, i.Plan.endpoints())...)
	return runSteps(ctx, to, steps)
}

// Access is the administrator's.
func (i *Init) Access() Access { return administratorAccess(i.Plan, i.Certificates) }

// administratorAccess is the access to the control plane of a node with the administrator's certificate in a directory.
func administratorAccess(plan *Plan, directory string) Access {
	file := func(name string) string { return filepath.Join(directory, name) }
	return Access{Server: plan.controlPlane().String(), CA: file(caFile), Certificate: file(adminFile + ".crt"), Key: file(adminFile + ".key")}
}

// controlPlaneFlags are those of a control plane that other members of the embedded etcd and joining servers can reach.
func (p *Plan) controlPlaneFlags() string {
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(p.address(), port) }
	flags := fmt.Sprintf("--listen %s --node %s --etcd-peer-address %s --join-listen %s", p.controlPlane(), p.Name, at(peerPort), at(joinPort))
	return withMembers(flags, p.Members)
}

// sharedObjects are the objects of the cluster that belong to no node.
func (p *Plan) sharedObjects() []proto.Message {
	var all []proto.Message
	for _, fabric := range p.fabricObjects() {
		all = append(all, fabric)
	}
	return append(all, &pb.GatewayPool{Meta: &pb.ObjectMeta{Name: gatewayPool}, Spec: &pb.GatewayPoolSpec{Fabrics: p.fabricNames()}})
}

// nodeSteps create the objects of a node, start its gateways, and wait for them.
func (s *System) nodeSteps(plan *Plan, cluster Cluster, controlPlanes []string) []step {
	var steps []step
	var all []proto.Message
	for _, object := range plan.gatewayObjects() {
		steps, all = append(steps, ensure(cluster, object)), append(all, object)
	}
	for _, object := range plan.poolObjects() {
		steps, all = append(steps, ensure(cluster, object)), append(all, object)
	}
	for _, one := range plan.gateways() {
		steps = append(steps, s.gatewayStep(one, plan.Name, controlPlanes))
	}
	return append(steps, awaited(cluster, all...))
}

// flags are those of the gateway's environment file; the unit has the others.
func (g *gateway) flags(node string, controlPlanes []string) string {
	return fmt.Sprintf("--control-plane %s --node %s --metrics %s", strings.Join(controlPlanes, " --control-plane "), node, g.metrics)
}

// ensure is the step that creates an object, unless there is one of its name.
func ensure(cluster Cluster, object proto.Message) step {
	kind := strings.ToLower(string(object.ProtoReflect().Descriptor().Name()))
	return step{what: "create the " + kind + " " + object.(interface{ GetMeta() *pb.ObjectMeta }).GetMeta().GetName(),
		run: func(ctx context.Context) (bool, error) { return cluster.Ensure(ctx, object) }}
}

// poolStep makes the directory of a local pool, which belongs to the account of the services.
func (s *System) poolStep(directory string) step {
	return step{what: "make the directory " + directory + " for volumes", run: func(context.Context) (bool, error) {
		user, _, err := s.Account()
		if err != nil || ownedBy(s.path(directory), user, serviceMode) {
			return false, err
		}
		return true, s.makeServiceDirectory(directory)
	}}
}

// setFlags sets the flags in an environment file of a service, and leaves its comments.
func (s *System) setFlags(path, flags string) (changed bool, err error) {
	text, err := s.read(path)
	if err != nil {
		return false, err
	}
	return s.put(path, withFlags(text, flags), ownerRoot)
}
