package node

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
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
			return i.System.setFlags(controlPlaneEnv, "--listen "+i.Plan.controlPlane().String())
		}},
		step{what: "make certificates in " + i.Certificates + " and install them in " + tlsDirectory, run: i.makeCertificates},
		step{what: "store the access of the administrator as a context of sluicectl", run: func(context.Context) (bool, error) { return i.StoreAccess(i.Access()) }},
		step{what: "start the control plane (" + controlPlaneUnit + ")", run: func(ctx context.Context) (bool, error) { return i.System.startUnit(ctx, controlPlaneUnit) }},
	)
	for _, object := range i.Plan.sharedObjects() {
		steps = append(steps, ensure(cluster, object))
	}
	steps = append(steps, i.System.nodeSteps(i.Plan, cluster, []netip.AddrPort{i.Plan.controlPlane()})...)
	return runSteps(ctx, to, steps)
}

// Access is the administrator's.
func (i *Init) Access() Access {
	file := func(name string) string { return filepath.Join(i.Certificates, name) }
	return Access{Server: i.Plan.controlPlane().String(), CA: file(caFile), Certificate: file(adminFile + ".crt"), Key: file(adminFile + ".key")}
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
func (s *System) nodeSteps(plan *Plan, cluster Cluster, controlPlanes []netip.AddrPort) []step {
	var steps []step
	var awaited []proto.Message
	for _, object := range plan.gatewayObjects() {
		steps, awaited = append(steps, ensure(cluster, object)), append(awaited, object)
	}
	for _, object := range plan.poolObjects() {
		steps, awaited = append(steps, ensure(cluster, object)), append(awaited, object)
	}
	for _, one := range plan.gateways() {
		path := "/etc/sluice/gateway-" + one.name + ".env"
		steps = append(steps, step{what: "start the gateway " + one.name + " (" + one.unit() + ", flags in " + path + ")", run: func(ctx context.Context) (bool, error) {
			wrote, err := s.setFlags(path, one.flags(plan.Name, controlPlanes))
			if err != nil {
				return false, err
			}
			started, err := s.startUnit(ctx, one.unit())
			return wrote || started, err
		}})
	}
	return append(steps, step{what: "wait until gateways and pools are ready", waits: true, run: func(ctx context.Context) (bool, error) {
		return false, cluster.WaitUsable(ctx, awaited...)
	}})
}

// flags are those of the gateway's environment file; the unit has the others.
func (g *gateway) flags(node string, controlPlanes []netip.AddrPort) string {
	var endpoints []string
	for _, one := range controlPlanes {
		endpoints = append(endpoints, one.String())
	}
	return fmt.Sprintf("--control-plane %s --node %s --metrics %s", strings.Join(endpoints, ","), node, g.metrics)
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
		user, group, err := s.Account()
		if err != nil {
			return false, err
		}
		at := s.path(directory)
		if ownedBy(at, user, poolMode) {
			return false, nil
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			return false, err
		}
		if err := os.Chmod(at, poolMode); err != nil {
			return false, err
		}
		return true, os.Chown(at, user, group)
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
