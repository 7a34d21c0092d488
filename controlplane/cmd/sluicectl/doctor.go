package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// finding is something that is not as it should be, and what to do about it.
type finding struct{ object, problem, mend string }

// unhealthyError ends `doctor` with an exit code that is not 0 where it found something.
type unhealthyError struct{ count int }

func (e *unhealthyError) Error() string { return fmt.Sprintf("%d findings", e.count) }

func doctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		Short: "Look over the whole system and say what is not as it should be, with a mend for each finding",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				seen, err := survey(ctx, connection)
				if err != nil {
					return err
				}
				findings := seen.findings()
				for _, f := range findings {
					_, _ = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n    mend: %s\n", f.object, f.problem, f.mend)
				}
				if len(findings) > 0 {
					return &unhealthyError{len(findings)}
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "%d gateways, %d targets, %d volumes, %d hosts: nothing to mend\n",
					len(seen.gateways), len(seen.targets), len(seen.volumes), len(seen.hosts))
				return err
			})
		},
	}
}

// whole is everything the control plane keeps.
type whole struct {
	gateways []*pb.Gateway
	targets  []*pb.Target
	volumes  []*pb.Volume
	hosts    []*pb.Host
	pools    []*pb.StoragePool
}

func survey(ctx context.Context, connection *grpc.ClientConn) (*whole, error) {
	w := &whole{}
	for _, k := range kinds {
		objects, err := k.list(ctx, connection, nil)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			switch o := object.(type) {
			case *pb.Gateway:
				w.gateways = append(w.gateways, o)
			case *pb.Target:
				w.targets = append(w.targets, o)
			case *pb.Volume:
				w.volumes = append(w.volumes, o)
			case *pb.Host:
				w.hosts = append(w.hosts, o)
			case *pb.StoragePool:
				w.pools = append(w.pools, o)
			}
		}
	}
	return w, nil
}

func (w *whole) findings() []finding {
	var found []finding
	for _, gateway := range w.gateways {
		found = append(found, gatewayFindings(gateway)...)
	}
	found = append(found, w.redundancyFindings()...)
	for _, target := range w.targets {
		found = append(found, targetFindings(target)...)
	}
	for _, volume := range w.volumes {
		if volume.GetStatus().GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_ORPHANED {
			found = append(found, finding{"volume " + volume.GetMeta().GetName(), "has no owner: hosts cannot use it",
				"bring back a gateway that reaches pool " + volume.GetSpec().GetPool() + "; `sluicectl gateway list`"})
		}
	}
	for _, host := range w.hosts {
		if host.GetSpec().GetChap() == nil {
			found = append(found, finding{"host " + host.GetMeta().GetName(), "is let in without authentication",
				"give it CHAP: `sluicectl host create` with --chap-secret-file, or `sluicectl apply`"})
		}
	}
	for _, pool := range w.pools {
		status := pool.GetStatus()
		used := float64(status.GetUsedBytes()) * 100 / float64(max(status.GetCapacityBytes(), 1))
		if status.GetCapacityBytes() > 0 && used >= float64(pool.GetSpec().GetWarnPercent()) {
			found = append(found, finding{"pool " + pool.GetMeta().GetName(), fmt.Sprintf("is %.0f %% full", used),
				"enlarge it, or delete volumes and snapshots that nobody needs"})
		}
	}
	return found
}

func gatewayFindings(gateway *pb.Gateway) []finding {
	name := "gateway " + gateway.GetMeta().GetName()
	switch gateway.GetStatus().GetHealth() {
	case pb.GatewayHealth_GATEWAY_HEALTH_NEW:
		return []finding{{name, "has not connected yet", fmt.Sprintf("start sluice-gateway on node %s",
			gateway.GetSpec().GetNode())}}
	case pb.GatewayHealth_GATEWAY_HEALTH_DEAD:
		return []finding{{name, "is dead, and fenced from its volumes", fmt.Sprintf(
			"look at node %s and restart it; it comes back by itself", gateway.GetSpec().GetNode())}}
	case pb.GatewayHealth_GATEWAY_HEALTH_DISCONNECTED:
		return []finding{{name, "serves on, but has no connection to the control plane", fmt.Sprintf(
			"look at the network between node %s and the control plane", gateway.GetSpec().GetNode())}}
	}
	return nil
}

// redundancyFindings looks for gateway pools that one failure takes away whole.
func (w *whole) redundancyFindings() []finding {
	nodes, count := map[string]map[string]bool{}, map[string]int{}
	for _, gateway := range w.gateways {
		pool := gateway.GetSpec().GetGatewayPool()
		if nodes[pool] == nil {
			nodes[pool] = map[string]bool{}
		}
		nodes[pool][gateway.GetSpec().GetNode()] = true
		count[pool]++
	}
	var found []finding
	for pool, on := range nodes {
		if len(on) == 1 {
			found = append(found, finding{"gatewaypool " + pool,
				fmt.Sprintf("has %d gateways, all on one node: its loss takes every path", count[pool]),
				"add a gateway on another node"})
		}
	}
	return found
}

func targetFindings(target *pb.Target) []finding {
	name := "target " + target.GetMeta().GetName()
	var found []finding
	if len(target.GetSpec().GetHosts()) == 0 {
		found = append(found, finding{name, "lets nobody in", "name its hosts: `sluicectl apply` with spec.hosts"})
	}
	if have, want := len(target.GetStatus().GetPaths()), int(target.GetSpec().GetPaths()); have < want {
		found = append(found, finding{name, fmt.Sprintf("has %d of %d paths", have, want),
			"add gateways to pool " + target.GetSpec().GetGatewayPool() + ", or bring them back"})
	}
	return found
}
