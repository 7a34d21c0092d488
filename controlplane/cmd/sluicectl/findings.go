package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxSkew is the tolerated difference of clocks. With more, logs and events of two machines cannot be put in order.
const maxSkew = 5 * time.Second

// alarms returns the problems that affect hosts now or at the next failure.
func (w *clusterObjects) alarms() []finding {
	var found []finding
	for _, gateway := range w.gateways {
		found = append(found, gatewayAlarms(gateway)...)
	}
	for _, target := range w.targets {
		found = append(found, w.targetAlarms(target)...)
	}
	for _, volume := range w.volumes {
		found = append(found, volumeAlarms(volume)...)
		if volume.GetStatus().GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_ORPHANED {
			found = append(found, finding{"volume " + volume.GetMeta().GetName(), "has no owner: hosts cannot use it",
				"bring back a gateway that reaches pool " + volume.GetSpec().GetPool() + "; `sluicectl gateway list`"})
		}
	}
	for _, pool := range w.pools {
		found = append(found, poolAlarms(pool)...)
	}
	return append(found, w.certificateAlarms()...)
}

func (w *clusterObjects) findings() []finding {
	found := append(w.controlFindings(), w.alarms()...)
	for _, gateway := range w.gateways {
		found = append(found, gatewayFindings(gateway)...)
	}
	found = append(found, w.redundancyFindings()...)
	for _, target := range w.targets {
		found = append(found, targetFindings(target)...)
	}
	for _, host := range w.hosts {
		if host.GetSpec().GetChap() == nil {
			found = append(found, finding{"host " + host.GetMeta().GetName(), "is let in without authentication",
				"give it CHAP: `sluicectl apply` with spec.chap, then the same name and secret on the host"})
		}
	}
	for _, pool := range w.pools {
		found = append(found, w.reachFindings(pool)...)
	}
	return append(found, w.switchFindings()...)
}

func (w *clusterObjects) controlFindings() []finding {
	var found []finding
	if w.control.GetEmbeddedStore() {
		found = append(found, finding{"control plane", "is one replica, with its store inside: without it nothing fails over",
			"run an etcd of three members, and replicas with --etcd-endpoints and one --key-file"})
	}
	if w.ahead.Abs() > maxSkew {
		found = append(found, finding{"control plane", fmt.Sprintf("its clock differs by %s from this machine's",
			w.ahead.Abs().Round(time.Second)), "have chrony or another NTP client run on both"})
	}
	now := w.control.GetTime().AsTime()
	for _, gateway := range w.gateways {
		seen := gateway.GetStatus().GetLastSeenTime()
		if w.control.GetTime() != nil && seen != nil && seen.AsTime().Sub(now) > maxSkew {
			found = append(found, finding{"gateway " + gateway.GetMeta().GetName(), fmt.Sprintf(
				"was last seen %s in the future: clocks differ", seen.AsTime().Sub(now).Round(time.Second)),
				"have chrony or another NTP client run on node " + gateway.GetSpec().GetNode() + " and the control plane's"})
		}
	}
	return found
}

func gatewayAlarms(gateway *pb.Gateway) []finding {
	name := "gateway " + gateway.GetMeta().GetName()
	for _, c := range gateway.GetStatus().GetConditions() {
		if c.GetType() == "Refused" && c.GetStatus() == pb.ConditionStatus_CONDITION_STATUS_TRUE {
			return []finding{{name, "a process that names it was refused (" + c.GetReason() + "): " + c.GetMessage(),
				"the message names the remedy; `sluicectl gateway describe " + gateway.GetMeta().GetName() + "`"}}
		}
	}
	switch gateway.GetStatus().GetHealth() {
	case pb.GatewayHealth_GATEWAY_HEALTH_DEAD:
		return []finding{{name, "is dead, and fenced from its volumes", fmt.Sprintf(
			"look at node %s and restart it; it comes back by itself", gateway.GetSpec().GetNode())}}
	case pb.GatewayHealth_GATEWAY_HEALTH_DISCONNECTED:
		return []finding{{name, "serves on, but has no connection to the control plane", fmt.Sprintf(
			"look at the network between node %s and the control plane", gateway.GetSpec().GetNode())}}
	}
	return nil
}

func gatewayFindings(gateway *pb.Gateway) []finding {
	name := "gateway " + gateway.GetMeta().GetName()
	switch gateway.GetStatus().GetHealth() {
	case pb.GatewayHealth_GATEWAY_HEALTH_NEW:
		return []finding{{name, "has not connected yet", fmt.Sprintf("start sluice-gateway on node %s",
			gateway.GetSpec().GetNode())}}
	case pb.GatewayHealth_GATEWAY_HEALTH_DRAINED:
		return []finding{{name, "is drained: it takes no part", fmt.Sprintf(
			"when its maintenance is over: `sluicectl gateway undrain %s`", gateway.GetMeta().GetName())}}
	}
	return nil
}

// redundancyFindings finds gateway pools that one failure disables entirely.
func (w *clusterObjects) redundancyFindings() []finding {
	nodes, count := map[string]map[string]bool{}, map[string]int{}
	for _, pool := range w.gatewayPools {
		nodes[pool.GetMeta().GetName()] = map[string]bool{}
	}
	for _, gateway := range w.gateways {
		pool := gateway.GetSpec().GetGatewayPool()
		if nodes[pool] == nil {
			nodes[pool] = map[string]bool{}
		}
		nodes[pool][gateway.GetSpec().GetNode()] = true
		count[pool]++
	}
	var found []finding
	for _, pool := range slices.Sorted(maps.Keys(nodes)) {
		problem := ""
		switch {
		case count[pool] == 0:
			problem = "has no gateway: nothing is exported"
		case count[pool] == 1:
			problem = "has one gateway, without a peer: no failover is possible"
		case len(nodes[pool]) == 1:
			problem = fmt.Sprintf("has %d gateways, all on one node: its loss takes every path", count[pool])
		}
		if problem != "" {
			found = append(found, finding{"gatewaypool " + pool, problem,
				"add a gateway on another node: `sluicectl gateway create --pool " + pool + "`"})
		}
	}
	return found
}

// redundancy of a target's paths.
type redundancy string

const (
	redundant    redundancy = "redundant"
	notRedundant redundancy = "not redundant"
	notExported  redundancy = "not exported"
)

// redundancyOf uses the condition of the control plane or, if there is none yet, the nodes of the paths.
func (w *clusterObjects) redundancyOf(target *pb.Target) redundancy {
	if len(target.GetStatus().GetPaths()) == 0 {
		return notExported
	}
	for _, condition := range target.GetStatus().GetConditions() {
		if condition.GetType() == "PathsRedundant" {
			if condition.GetStatus() == pb.ConditionStatus_CONDITION_STATUS_TRUE {
				return redundant
			}
			return notRedundant
		}
	}
	nodes := map[string]bool{}
	for _, path := range target.GetStatus().GetPaths() {
		for _, gateway := range w.gateways {
			if gateway.GetStatus().GetNumber() == path.GetTargetPortGroup() {
				nodes[gateway.GetSpec().GetNode()] = true
			}
		}
	}
	if len(nodes) < 2 {
		return notRedundant
	}
	return redundant
}

func (w *clusterObjects) targetAlarms(target *pb.Target) []finding {
	name := "target " + target.GetMeta().GetName()
	more := "add gateways on other nodes to pool " + target.GetSpec().GetGatewayPool() + ", or bring them back"
	switch w.redundancyOf(target) {
	case notExported:
		return []finding{{name, "no gateway exports it: hosts cannot reach it", more}}
	case notRedundant:
		return []finding{{name, "its paths are not redundant: one failure can take them all" + troubles(target), more}}
	}
	return nil
}

func targetFindings(target *pb.Target) []finding {
	name := "target " + target.GetMeta().GetName()
	var found []finding
	if len(target.GetSpec().GetHosts()) == 0 {
		found = append(found, finding{name, "lets nobody in", "name its hosts: `sluicectl apply` with spec.hosts"})
	}
	if len(target.GetSpec().GetLuns()) == 0 {
		found = append(found, finding{name, "has no LUN", "map a volume: `sluicectl apply` with spec.luns"})
	}
	have, want := len(target.GetStatus().GetPaths()), int(target.GetSpec().GetPaths())
	switch {
	case want == 1:
		found = append(found, finding{name, "is meant to have one path: the gateway's loss is the hosts' loss",
			"set spec.paths to 2 or more"})
	case have > 0 && have < want:
		found = append(found, finding{name, fmt.Sprintf("has %d of %d paths", have, want),
			"add gateways to pool " + target.GetSpec().GetGatewayPool() + ", or bring them back"})
	}
	return found
}

// volumeAlarms returns the volumes whose data gateways cannot serve, or not after the next move. A pool's finding covers its
// volumes.
func volumeAlarms(volume *pb.Volume) []finding {
	remedies := map[string]string{
		"MediumFailed":    "the message names the remedy; `sluicectl volume move` opens the image again",
		"MediumMisplaced": "rename the former file back, or restore the mount, before the volume moves",
		"MediumStuck":     "check the disk, file system or Ceph pool below it; hosts continue when it does",
		"OpenFailed":      "the message names the remedy",
	}
	for _, c := range badConditions(volume) {
		if remedy, unusable := remedies[c.GetReason()]; unusable && c.GetType() == "Degraded" {
			return []finding{{"volume " + volume.GetMeta().GetName(), "its data is not usable (" + c.GetReason() + "): " + c.GetMessage(), remedy}}
		}
	}
	return nil
}

func poolAlarms(pool *pb.StoragePool) []finding {
	name, status := "pool "+pool.GetMeta().GetName(), pool.GetStatus()
	var found []finding
	for _, condition := range badConditions(pool) {
		switch {
		case condition.GetReason() == "PoolNotIdentified":
			found = append(found, finding{name, "may be other storage than it was; nothing is created or deleted there: " +
				condition.GetMessage(), storageFix(pool) + "; if it was replaced deliberately, `sluicectl pool adopt " +
				pool.GetMeta().GetName() + "`"})
		case condition.GetReason() == "ImageMissing":
			found = append(found, finding{name, condition.GetMessage(), "restore the images, or delete the volumes: `sluicectl pool get " +
				pool.GetMeta().GetName() + " -o yaml` names them in status.missingImages"})
		case condition.GetType() == "Ready":
			found = append(found, finding{name, "is not reachable: " + condition.GetMessage(),
				"look at its storage: " + poolLocation(pool) + ", and at the gateways' logs"})
		}
	}
	used := float64(status.GetUsedBytes()) * 100 / float64(max(status.GetCapacityBytes(), 1))
	if status.GetCapacityBytes() > 0 && used >= float64(pool.GetSpec().GetWarnPercent()) {
		found = append(found, finding{name, fmt.Sprintf("is %.0f %% full", used),
			"enlarge it, or delete volumes and snapshots that nobody needs"})
	}
	return found
}

// storageFix is the remedy for a pool's storage.
func storageFix(pool *pb.StoragePool) string {
	if pool.GetSpec().GetRbd() != nil {
		return "restore the Ceph pool " + poolLocation(pool) + ", or correct spec.rbd.monitors"
	}
	return "mount the pool's storage at " + poolLocation(pool)
}

// reachFindings finds a pool that no gateway can open: for a local pool only gateways of its node can.
func (w *clusterObjects) reachFindings(pool *pb.StoragePool) []finding {
	node := pool.GetSpec().GetLocal().GetNode()
	for _, gateway := range w.gateways {
		switch gateway.GetStatus().GetHealth() {
		case pb.GatewayHealth_GATEWAY_HEALTH_READY, pb.GatewayHealth_GATEWAY_HEALTH_DISCONNECTED,
			pb.GatewayHealth_GATEWAY_HEALTH_DRAINING:
			if node == "" || gateway.GetSpec().GetNode() == node {
				return nil
			}
		}
	}
	name := "pool " + pool.GetMeta().GetName()
	if node == "" {
		return []finding{{name, "no gateway is ready: nobody reaches it", "start the gateways; `sluicectl gateway list`"}}
	}
	return []finding{{name, "no gateway is ready on node " + node + ": nobody reaches it",
		"start sluice-gateway on node " + node + ", under a gateway that `sluicectl gateway create --node " + node + "` makes"}}
}
