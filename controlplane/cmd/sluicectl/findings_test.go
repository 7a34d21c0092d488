package main

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func gatewayOn(name string, number uint32, node string, health pb.GatewayHealth) *pb.Gateway {
	return &pb.Gateway{Meta: &pb.ObjectMeta{Name: name}, Spec: &pb.GatewaySpec{Node: node, GatewayPool: "default"},
		Status: &pb.GatewayStatus{Number: number, Health: health}}
}

func targetOn(paths int32, gateways ...uint32) *pb.Target {
	target := &pb.Target{Meta: &pb.ObjectMeta{Name: "shop"}, Spec: &pb.TargetSpec{Paths: paths, GatewayPool: "default",
		Hosts: []string{"web"}, Luns: []*pb.TargetLun{{Volume: "orders"}}}, Status: &pb.TargetStatus{}}
	for _, number := range gateways {
		target.Status.Paths = append(target.Status.Paths, &pb.TargetPath{TargetPortGroup: number})
	}
	return target
}

func localPool(node string, conditions ...*pb.Condition) *pb.StoragePool {
	return &pb.StoragePool{Meta: &pb.ObjectMeta{Name: "nvme"}, Status: &pb.StoragePoolStatus{Conditions: conditions},
		Spec: &pb.StoragePoolSpec{WarnPercent: 85, Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: node}}}}
}

func condition(kind string, status pb.ConditionStatus, message string) *pb.Condition {
	return &pb.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
}

func because(reason, kind string, status pb.ConditionStatus, message string) *pb.Condition {
	c := condition(kind, status, message)
	c.Reason = reason
	return c
}

// healthy is a system without problems.
func healthy() *clusterObjects {
	ready := pb.GatewayHealth_GATEWAY_HEALTH_READY
	return &clusterObjects{
		control:      &pb.GetControlPlaneResponse{Time: timestamppb.Now()},
		gatewayPools: []*pb.GatewayPool{{Meta: &pb.ObjectMeta{Name: "default"}}},
		gateways:     []*pb.Gateway{gatewayOn("gw-1", 1, "node-1", ready), gatewayOn("gw-2", 2, "node-2", ready)},
		targets:      []*pb.Target{targetOn(2, 1, 2)},
		hosts:        []*pb.Host{{Meta: &pb.ObjectMeta{Name: "web"}, Spec: &pb.HostSpec{Chap: &pb.ChapCredentials{}}}},
		pools:        []*pb.StoragePool{localPool("node-1")},
		fabrics:      []*pb.Fabric{{Meta: &pb.ObjectMeta{Name: "red"}, Spec: &pb.FabricSpec{Switches: []string{"s1"}}}},
	}
}

func TestEveryFaultIsFoundOnceWithAMend(t *testing.T) {
	if found := healthy().findings(); len(found) > 0 {
		t.Fatalf("a healthy system: %v", found)
	}
	no := pb.ConditionStatus_CONDITION_STATUS_FALSE
	faults := map[string]struct {
		object, problem string
		damage          func(*clusterObjects)
	}{
		"one replica": {"control plane", "one replica", func(w *clusterObjects) { w.control.EmbeddedStore = true }},
		"clock":       {"control plane", "differs by 1m0s", func(w *clusterObjects) { w.ahead = -time.Minute }},
		"gateway's clock": {"gateway gw-1", "in the future", func(w *clusterObjects) {
			w.gateways[0].Status.LastSeenTime = timestamppb.New(time.Now().Add(time.Hour))
		}},
		"no peer":    {"gatewaypool default", "without a peer", func(w *clusterObjects) { w.gateways, w.targets = w.gateways[:1], nil }},
		"no gateway": {"gatewaypool spare", "has no gateway", func(w *clusterObjects) { w.gatewayPools[0].Meta.Name = "spare" }},
		"one node": {"gatewaypool default", "all on one node", func(w *clusterObjects) {
			w.gateways[1].Spec.Node, w.targets = "node-1", nil
		}},
		"one path":    {"target shop", "meant to have one path", func(w *clusterObjects) { w.targets[0].Spec.Paths = 1 }},
		"fewer paths": {"target shop", "has 2 of 3 paths", func(w *clusterObjects) { w.targets[0].Spec.Paths = 3 }},
		"unexported":  {"target shop", "no gateway exports it", func(w *clusterObjects) { w.targets[0].Status.Paths = nil }},
		"not redundant": {"target shop", "not redundant: one failure can take them all (Because: one switch)", func(w *clusterObjects) {
			w.targets[0].Status.Conditions = []*pb.Condition{condition("PathsRedundant", no, "one switch")}
		}},
		"nobody": {"target shop", "lets nobody in", func(w *clusterObjects) { w.targets[0].Spec.Hosts = nil }},
		"no LUN": {"target shop", "has no LUN", func(w *clusterObjects) { w.targets[0].Spec.Luns = nil }},
		"no switch of a portal": {"gateway gw-1", "switch s9, which fabric red does not have", func(w *clusterObjects) {
			w.gateways[0].Spec.Portals = []*pb.Portal{{Fabric: "red", Switch: "s1"}, {Fabric: "red"}, {Fabric: "red", Switch: "s9"}}
		}},
		"no switch of a host": {"host web", "switch s1, which fabric blue does not have", func(w *clusterObjects) {
			w.hosts[0].Spec.Switches = []string{"red/s1", "blue/s1"}
		}},
		"failed medium": {"volume orders", "its data is not usable (MediumFailed): the file was deleted", func(w *clusterObjects) {
			w.volumes = append(w.volumes, &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders"}, Status: &pb.VolumeStatus{Conditions: []*pb.Condition{
				{Type: "Degraded", Status: pb.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "MediumFailed", Message: "the file was deleted"}}}})
		}},
		"no CHAP":  {"host web", "without authentication", func(w *clusterObjects) { w.hosts[0].Spec.Chap = nil }},
		"far pool": {"pool nvme", "no gateway is ready on node node-9", func(w *clusterObjects) { w.pools[0] = localPool("node-9") }},
		"dead pool": {"pool nvme", "not reachable: gone", func(w *clusterObjects) {
			w.pools[0] = localPool("node-1", condition("Ready", no, "gone"))
		}},
		"unidentified pool": {"pool nvme", "may be other storage than it was; nothing is created or deleted there: no marker", func(w *clusterObjects) {
			w.pools[0] = localPool("node-1", because("PoolNotIdentified", "Ready", no, "no marker"))
		}},
		"missing images": {"pool nvme", "the images of 2 volumes are missing", func(w *clusterObjects) {
			w.pools[0] = localPool("node-1", because("ImageMissing", "Degraded", pb.ConditionStatus_CONDITION_STATUS_TRUE,
				"the images of 2 volumes are missing"))
		}},
		"refused gateway": {"gateway gw-1", "a process that names it was refused (WrongNode): it runs on node-7", func(w *clusterObjects) {
			w.gateways[0].Status.Conditions = []*pb.Condition{because("WrongNode", "Refused", pb.ConditionStatus_CONDITION_STATUS_TRUE,
				"it runs on node-7")}
		}},
		"full pool": {"pool nvme", "is 90 % full", func(w *clusterObjects) {
			w.pools[0].Status.CapacityBytes, w.pools[0].Status.UsedBytes = 1000, 900
		}},
	}
	for name, fault := range faults {
		w := healthy()
		fault.damage(w)
		found := w.findings()
		if name != "no gateway" && len(found) != 1 {
			t.Errorf("%s: %d findings: %v", name, len(found), found)
			continue
		}
		matches := 0
		for _, f := range found {
			if f.Object == fault.object && strings.Contains(f.Problem, fault.problem) && f.Mend != "" {
				matches++
			}
		}
		if matches != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestPathsOnOneNodeAreNotRedundant(t *testing.T) {
	w := healthy()
	w.gateways[1].Spec.Node = "node-1"
	if got := w.redundancyOf(w.targets[0]); got != notRedundant {
		t.Errorf("%s", got)
	}
}

func TestACertificateThatExpiresWithin30DaysIsFound(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for days, problem := range map[int]string{31: "", 29: "expires in 29 days, on 2026-12-20", -1: "has expired on 2026-11-20"} {
		found := expiryFindings("certificate", &x509.Certificate{NotAfter: now.AddDate(0, 0, days)}, now)
		if problem == "" && len(found) > 0 || problem != "" && (len(found) != 1 || found[0].Problem != problem) {
			t.Errorf("%d days: %v", days, found)
		}
	}
}
