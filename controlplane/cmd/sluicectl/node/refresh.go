package node

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Refresh gives the gateways of this server the addresses of all control planes.
type Refresh struct {
	System  *System
	Cluster Cluster
}

// Run writes the flags of the gateways. A gateway whose flags change starts again, one after the other, so hosts continue over the others.
func (r *Refresh) Run(ctx context.Context, to io.Writer) (changed bool, err error) {
	plan, err := r.System.readRecord()
	if err != nil {
		return false, err
	}
	if plan == nil || len(plan.Fabrics) == 0 {
		return false, errors.New("this server was not set up by `sluicectl node init` or `sluicectl node join`: " + RecordFile +
			" is missing or not complete. Run that command, or edit the files /etc/sluice/gateway-NAME.env")
	}
	addresses, err := r.Cluster.ControlPlanes(ctx)
	if err != nil {
		return false, err
	}
	others := slices.DeleteFunc(addresses, func(address string) bool { return plan.Member && address == plan.controlPlane().String() })
	slices.Sort(others)
	plan.ControlPlanes = others
	steps := []step{{what: "record the control planes of the system in " + RecordFile, run: func(context.Context) (bool, error) { return r.System.writeRecord(plan) }}}
	objects := plan.gatewayObjects()
	for i, one := range plan.gateways() {
		steps = append(steps, r.System.gatewayStep(one, plan.Name, plan.endpoints()), awaited(r.Cluster, objects[i]))
	}
	return runSteps(ctx, to, steps)
}

// awaited is the step that waits until objects can be used.
func awaited(cluster Cluster, objects ...proto.Message) step {
	what := "wait until all of it is ready"
	if len(objects) == 1 {
		what = "wait until it is ready"
	}
	return step{what: what, waits: true, run: func(ctx context.Context) (bool, error) {
		return false, cluster.WaitUsable(ctx, objects...)
	}}
}
