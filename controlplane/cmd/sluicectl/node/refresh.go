package node

import (
	"context"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Refresh gives the gateways of this server the addresses of all control planes, and its control plane those of the other members.
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
		return false, fmt.Errorf("%w. Run that command, or edit the files /etc/sluice/gateway-NAME.env", errNotSetUp)
	}
	members, err := r.Cluster.Members(ctx)
	if err != nil {
		return false, err
	}
	plan.ControlPlanes, plan.Members = nil, nil
	for _, member := range members {
		if plan.Member && member.GetNode() == plan.Name {
			continue
		}
		if member.GetApiAddress() != "" {
			plan.ControlPlanes = append(plan.ControlPlanes, member.GetApiAddress())
		}
		if plan.Member {
			plan.Members = append(plan.Members, member.GetPeerAddress())
		}
	}
	slices.Sort(plan.ControlPlanes)
	slices.Sort(plan.Members)
	steps := []step{{what: "record the control planes of the system in " + RecordFile, run: func(context.Context) (bool, error) { return r.System.writeRecord(plan) }}}
	if plan.Member {
		// They matter for a start without data only, so the control plane does not start again.
		steps = append(steps, step{what: "set the other members in " + controlPlaneEnv, run: func(context.Context) (bool, error) {
			text, err := r.System.read(controlPlaneEnv)
			if err != nil {
				return false, err
			}
			return r.System.setFlags(controlPlaneEnv, withMembers(flagsIn(text), plan.Members))
		}})
	}
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
