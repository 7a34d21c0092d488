package findings_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// system is what a test changes: objects by kind and name, and the facts about the control plane.
type system struct {
	facts findings.System
	all   map[string]model.Object
}

func (s *system) put(objects ...model.Object) {
	for _, o := range objects {
		s.all[string(o.Kind())+"/"+o.Metadata().Name] = o
	}
}

func (s *system) objects() *objects.Objects {
	o := objects.New()
	for _, object := range s.all {
		o.Put(object)
	}
	return o
}

func (s *system) items() []findings.Item { return findings.Items(s.objects(), s.facts) }

func (s *system) gateway(name string) *model.Gateway { return s.all["Gateway/"+name].(*model.Gateway) }
func (s *system) pool() *model.StoragePool           { return s.all["StoragePool/nvme"].(*model.StoragePool) }
func (s *system) volume() *model.Volume              { return s.all["Volume/orders"].(*model.Volume) }
func (s *system) target() *model.Target              { return s.all["Target/shop"].(*model.Target) }
func (s *system) host() *model.Host                  { return s.all["Host/web"].(*model.Host) }

func condition(kind string, status model.ConditionStatus, reason, message string) model.Condition {
	return model.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: now.Add(-time.Hour)}
}

func degraded(reason, message string) []model.Condition {
	return []model.Condition{condition(model.ConditionDegraded, model.ConditionTrue, reason, message)}
}

func unready(reason, message string) []model.Condition {
	return []model.Condition{condition(model.ConditionReady, model.ConditionFalse, reason, message)}
}

func gateway(name string, number uint32, node string) *model.Gateway {
	return &model.Gateway{Meta: model.Meta{Name: name}, Spec: model.GatewaySpec{Node: node, GatewayPool: "default",
		Portals: []model.Portal{{Fabric: "red", Switch: "s1"}, {Fabric: "blue", Switch: "s2"}}},
		Status: model.GatewayStatus{Number: number, PortalGroupTags: map[string]uint32{"red": 10*number + 1, "blue": 10*number + 2}, Health: model.GatewayReady, Version: "1.0", LastSeen: now}}
}

// healthy is a system without faults.
func healthy() *system {
	s := &system{facts: findings.System{Time: now, Version: "1.0", StoreQuota: 1000, StoreUsed: 10,
		Certificates: []findings.Certificate{{Role: "gateway", Holder: "gw-1", End: now.Add(60 * 24 * time.Hour)}}},
		all: map[string]model.Object{}}
	s.put(
		&model.Fabric{Meta: model.Meta{Name: "red"}, Spec: model.FabricSpec{Switches: []string{"s1"}}},
		&model.Fabric{Meta: model.Meta{Name: "blue"}, Spec: model.FabricSpec{Switches: []string{"s2"}}},
		&model.GatewayPool{Meta: model.Meta{Name: "default"}},
		gateway("gw-1", 1, "node-1"), gateway("gw-2", 2, "node-2"),
		&model.StoragePool{Meta: model.Meta{Name: "nvme"}, Spec: model.StoragePoolSpec{WarnPercent: 85,
			Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}},
		&model.Volume{Meta: model.Meta{Name: "orders"}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{CapacityBytes: 1 << 30,
			Ownership:  model.Ownership{State: model.Owned, Owner: model.GatewayRef{Number: 1}},
			Conditions: []model.Condition{condition(model.ConditionReady, model.ConditionTrue, "Ready", "")}}},
		&model.Snapshot{Meta: model.Meta{Name: "monday"}, Spec: model.SnapshotSpec{Volume: "orders"}, Status: model.SnapshotStatus{Ready: true}},
		&model.Host{Meta: model.Meta{Name: "web"}, Spec: model.HostSpec{Initiators: []string{webInitiator},
			Chap: &model.ChapCredentials{}, Switches: []string{"red/s1"}}},
		&model.Target{Meta: model.Meta{Name: "shop"}, Spec: model.TargetSpec{IQN: shopIQN, Paths: 2, GatewayPool: "default", Hosts: []string{"web"},
			Luns: []model.TargetLun{{Volume: "orders"}}}, Status: model.TargetStatus{PathSet: []uint32{1, 2}}},
	)
	return s
}

type fault struct {
	id, object, cause string
	damage            func(*system)
}

var faults = []fault{
	{"StoreFull", "ControlPlane/", "no space left", func(s *system) { s.facts.StoreFull = true }},
	{"StoreUnreachable", "ControlPlane/", "does not answer: timeout", func(s *system) { s.facts.StoreProblem = "timeout" }},
	{"StoreNearlyFull", "ControlPlane/", "more than 80 %", func(s *system) { s.facts.StoreUsed = 801 }},
	{"StoreMemberDown", "ControlPlane/", "do not answer: http://etcd-2:2379",
		func(s *system) { s.facts.SilentMembers = []string{"http://etcd-2:2379"} }},
	{"NoLeader", "ControlPlane/", "no leader", func(s *system) { s.facts.NoLeader = true }},
	{"OneReplica", "ControlPlane/", "one replica", func(s *system) { s.facts.EmbeddedStore = true }},
	{"OneReplica", "ControlPlane/", "is one replica: while", func(s *system) { s.facts.Replicas = 1 }},
	{"CertificateEndsSoon", "Certificate/gateway gw-1", "expires in 9 days, on 2026-12-06",
		func(s *system) { s.facts.Certificates[0].End = now.Add(9*24*time.Hour + time.Hour) }},
	{"CertificateExpired", "Certificate/gateway gw-1", "has expired on 2026-11-27", func(s *system) { s.facts.Certificates[0].End = now }},
	{"NoGateway", "GatewayPool/spare", "has no gateway", func(s *system) { s.put(&model.GatewayPool{Meta: model.Meta{Name: "spare"}}) }},
	{"GatewayDead", "Gateway/gw-2", "is dead", func(s *system) { s.gateway("gw-2").Status.Health = model.GatewayDead }},
	{"FencingRateLimited", "Gateway/gw-2", "too many nodes", func(s *system) {
		s.gateway("gw-2").Status.Health, s.gateway("gw-2").Status.Conditions = model.GatewayDisconnected, unready(model.ReasonFencingRateLimited, "")
	}},
	{"GatewayRefused", "Gateway/gw-2", "was refused (WrongNode): it runs on node-7", func(s *system) {
		s.gateway("gw-2").Status.Health = model.GatewayNew
		s.gateway("gw-2").Status.Conditions = []model.Condition{condition(model.ConditionRefused, model.ConditionTrue, "WrongNode", "it runs on node-7")}
		s.gateway("gw-2").Status.LastRefused = now.Add(-model.RefusedAgain)
	}},
	{"GatewayNotServing", "Gateway/gw-2", "is not reached: no peer reaches it", func(s *system) {
		s.gateway("gw-2").Status.Health, s.gateway("gw-2").Status.Conditions = model.GatewayNotServing, unready("PeersUnreachable", "no peer reaches it")
	}},
	{"GatewayDisconnected", "Gateway/gw-2", "no connection to the control plane",
		func(s *system) { s.gateway("gw-2").Status.Health = model.GatewayDisconnected }},
	{"GatewayStartedTwice", "Gateway/gw-1", "PortsInUse", func(s *system) {
		g := s.gateway("gw-1")
		g.Status.Conditions = append(g.Status.Conditions, condition(model.ConditionRefused, model.ConditionTrue, "PortsInUse", "in use"))
		g.Status.LastRefused = now.Add(-model.RefusedAgain)
	}},
	{"GatewayNeverConnected", "Gateway/gw-2", "has not connected", func(s *system) { s.gateway("gw-2").Status.Health = model.GatewayNew }},
	{"GatewayDrained", "Gateway/gw-2", "is drained", func(s *system) { s.gateway("gw-2").Status.Health = model.GatewayDrained }},
	{"DrainBlocked", "Gateway/gw-2", "cannot be drained: volume v cannot leave", func(s *system) {
		s.gateway("gw-2").Status.Health = model.GatewayDraining
		s.gateway("gw-2").Status.Conditions = unready(model.ReasonDrainBlocked, "volume v cannot leave")
	}},
	{"GatewayNotApplied", "Gateway/gw-2", "refuses a part of its desired state: listener 1: address in use", func(s *system) {
		s.gateway("gw-2").Status.Conditions = degraded(model.ReasonNotApplied, "listener 1: address in use")
	}},
	{"GatewayDegraded", "Gateway/gw-2", "is degraded (Novel): something", func(s *system) { s.gateway("gw-2").Status.Conditions = degraded("Novel", "something") }},
	{"ClockAhead", "Gateway/gw-2", "1h0m0s in the future", func(s *system) { s.gateway("gw-2").Status.LastSeen = now.Add(time.Hour) }},
	{"VersionSkew", "Gateway/gw-2", "runs version 0.9, and the control plane 1.0", func(s *system) { s.gateway("gw-2").Status.Version = "0.9" }},
	{"UnknownSwitch", "Gateway/gw-2", "switch s9, which fabric red does not have", func(s *system) { s.gateway("gw-2").Spec.Portals[0].Switch = "s9" }},
	{"UnknownSwitch", "Host/web", "switch s1, which fabric blue does not have", func(s *system) { s.host().Spec.Switches = []string{"blue/s1"} }},
	{"GatewaysNotRedundant", "GatewayPool/default", "without a peer", func(s *system) { delete(s.all, "Gateway/gw-2"); delete(s.all, "Target/shop") }},
	{"GatewaysNotRedundant", "GatewayPool/default", "2 gateways, all on one node", func(s *system) {
		s.gateway("gw-2").Spec.Node = "node-1"
		delete(s.all, "Target/shop")
	}},
	{"PoolNotIdentified", "StoragePool/nvme", "nothing is created or deleted there: no marker",
		func(s *system) { s.pool().Status.Conditions = unready(model.ReasonPoolNotIdentified, "no marker") }},
	{"PoolUnreachable", "StoragePool/nvme", "is not reachable: I/O error", func(s *system) { s.pool().Status.Conditions = unready("Problem", "I/O error") }},
	{"PoolWithoutGateway", "StoragePool/nvme", "no gateway is ready on node node-9", func(s *system) { s.pool().Spec.Local.Node = "node-9" }},
	{"ImageMissing", "StoragePool/nvme", "the images of 2 volumes are missing",
		func(s *system) {
			s.pool().Status.Conditions = degraded(model.ReasonImageMissing, "the images of 2 volumes are missing")
		}},
	{"DeviceTakenOut", "Volume/orders", "device /dev/sdb was taken out",
		func(s *system) {
			s.volume().Status.Conditions = degraded(model.ReasonTakenOut, "device /dev/sdb was taken out")
		}},
	{"PoolNearlyFull", "StoragePool/nvme", "is 90 % full", func(s *system) { s.pool().Status.CapacityBytes, s.pool().Status.UsedBytes = 1000, 900 }},
	{"DevicesUnusable", "StoragePool/nvme", "cannot hold a volume: /dev/sdc",
		func(s *system) {
			s.pool().Status.Conditions = degraded(model.ReasonDevicesUnusable, "/dev/sdc is mounted")
		}},
	{"PoolDegraded", "StoragePool/nvme", "has a problem: gateway gw-1: slow", func(s *system) { s.pool().Status.Conditions = degraded("Problem", "gateway gw-1: slow") }},
	{"OrphanedImages", "StoragePool/nvme", "has 3 images", func(s *system) { s.pool().Status.OrphanedImageCount = 3 }},
	{"VolumeWithoutOwner", "Volume/orders", "has no owner: hosts cannot use it (nobody)",
		func(s *system) { s.volume().Status.Conditions = unready(model.ReasonNoGateway, "nobody") }},
	{"VolumeWithoutOwner", "Volume/orders", "has no owner", func(s *system) { s.volume().Status.Ownership.State = model.Orphaned }},
	{"VolumeWithoutOwner", "Volume/orders", "a gateway takes it", func(s *system) { // for an hour
		s.volume().Status.Conditions = unready("Opening", "a gateway takes it")
	}},
	{"VolumeDataUnusable", "Volume/orders", "its data is not usable (MediumFailed): the file was deleted",
		func(s *system) {
			s.volume().Status.Conditions = degraded(model.ReasonMediumFailed, "the file was deleted")
		}},
	{"VolumeStuck", "Volume/orders", "completes none",
		func(s *system) {
			s.volume().Status.Conditions = degraded(model.ReasonMediumStuck, "gateway gw-1: the medium completes none")
		}},
	{"VolumeMediumErrors", "Volume/orders", "ended with errors",
		func(s *system) {
			s.volume().Status.Conditions = degraded(model.ReasonMediumErrors, "gateway gw-1: commands of hosts ended with errors")
		}},
	{"VolumeDataMisplaced", "Volume/orders", "no longer leads to the data",
		func(s *system) { s.volume().Status.Conditions = degraded(model.ReasonMediumMisplaced, "moved") }},
	{"VolumeNotMade", "Volume/new", "is degraded (JobFailed): no space", func(s *system) {
		s.put(&model.Volume{Meta: model.Meta{Name: "new"}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{
			Conditions: degraded(model.ReasonJobFailed, "no space")}})
	}},
	{"VolumeNotApplied", "Volume/orders", "is refused: gateway gw-2", func(s *system) {
		s.volume().Status.Conditions = degraded(model.ReasonNotApplied, "gateway gw-2: no such pool")
	}},
	{"VolumeOwnerDisconnected", "Volume/orders", "no stream", func(s *system) {
		s.volume().Status.Conditions = degraded(model.ReasonNoStream, "its owner has no stream")
	}},
	{"VolumeDegraded", "Volume/orders", "is degraded (Novel): something", func(s *system) { s.volume().Status.Conditions = degraded("Novel", "something") }},
	{"OperationsHeld", "Volume/orders", "waits for a confirmation of: deletion", func(s *system) { s.volume().Status.Held = []string{"deletion"} }},
	{"DeletionWaits", "Volume/orders", "its deletion waits: its owner has yet to release it", func(s *system) {
		then := now.Add(-2 * time.Minute)
		s.volume().Meta.DeleteTime = &then
		s.volume().Status.Conditions = []model.Condition{condition(model.ConditionProgressing, model.ConditionTrue, "Releasing", "its owner has yet to release it")}
	}},
	{"RequestFailed", "Volume/orders", "was not carried out (MoveRefused): no such gateway", func(s *system) {
		s.volume().Status.Conditions = []model.Condition{condition(model.ConditionProgressing, model.ConditionFalse, model.ReasonMoveRefused, "no such gateway")}
	}},
	{"SnapshotFailed", "Snapshot/monday", "failed (Unsupported): no reflink", func(s *system) {
		s.all["Snapshot/monday"].(*model.Snapshot).Status.Conditions = unready(model.ReasonJobUnsupported, "no reflink")
	}},
	{"TargetNotExported", "Target/shop", "no gateway exports it", func(s *system) { s.target().Status.PathSet = nil }},
	{"TargetNotApplied", "Target/shop", "is refused: gateway gw-2", func(s *system) {
		s.target().Status.Conditions = degraded(model.ReasonNotApplied, "gateway gw-2: too many LUNs")
	}},
	{"FewerPaths", "Target/shop", "has 2 of 3 paths", func(s *system) { s.target().Spec.Paths = 3 }},
	{"PathsNotRedundant", "Target/shop", "one failure can take them all (switch red/s1)", func(s *system) {
		s.target().Status.Conditions = []model.Condition{condition(model.ConditionPathsRedundant, model.ConditionFalse, "SinglePointOfFailure", "switch red/s1")}
	}},
	{"TargetDegraded", "Target/shop", "is degraded (Novel): something", func(s *system) { s.target().Status.Conditions = degraded("Novel", "something") }},
	{"TargetHasOnePath", "Target/shop", "is to have one path", func(s *system) { s.target().Spec.Paths = 1 }},
	{"TargetWithoutHosts", "Target/shop", "permits no host", func(s *system) { s.target().Spec.Hosts = nil }},
	{"TargetWithoutLuns", "Target/shop", "has no LUN", func(s *system) { s.target().Spec.Luns = nil }},
	{"HostLoginRefused", "Host/web", "(at gateway gw-1, target shop, from 192.0.2.7): status 0203: none",
		func(s *system) { s.met(model.HostLoginRefused, webInitiator, "status 0203: none") }},
	{"HostLoginRefused", "Gateway/gw-1", "(initiator iqn.2026-11.org.example:stranger, which no host has, target shop, from 192.0.2.7): status 0203: none",
		func(s *system) {
			s.met(model.HostLoginRefused, "iqn.2026-11.org.example:stranger", "status 0203: none")
		}},
	{"HostAuthenticationFailing", "Host/web", "(at gateway gw-1, target shop, from 192.0.2.7): the CHAP response is wrong",
		func(s *system) { s.met(model.HostAuthenticationFailed, webInitiator, "the CHAP response is wrong") }},
	{"HostPingsLost", "Host/web", "(at gateway gw-1, target shop, from 192.0.2.7)", func(s *system) { s.met(model.HostPingLost, webInitiator, "") }},
	{"HostDigestErrors", "Host/web", "(at gateway gw-1, target shop, from 192.0.2.7): the data digest",
		func(s *system) { s.met(model.HostDigestError, webInitiator, "the data digest of a PDU is wrong") }},
	{"HostPathMissing", "Host/web", "none to target shop at gateway gw-2, fabric red", func(s *system) { s.session(1, 11) }},
	{"HostPathOnWrongFabric", "Host/web", "target shop at gateway gw-2, fabric blue", func(s *system) {
		s.session(1, 11)
		s.session(2, 21)
		s.session(2, 22) // its portal on blue, to which the host is not attached
	}},
	{"HostUnauthenticated", "Host/web", "without authentication", func(s *system) { s.host().Spec.Chap = nil }},
}

func TestEveryFaultIsOneFindingWithItsCauseAndARemedy(t *testing.T) {
	if items := healthy().items(); len(items) > 0 {
		t.Fatalf("a healthy system: %+v", items)
	}
	seen := map[string]bool{}
	for _, f := range faults {
		seen[f.id] = true
		s := healthy()
		f.damage(s)
		found := findings.Group(s.items())
		if len(found) != 1 {
			t.Errorf("%s: %d findings: %+v", f.id, len(found), found)
			continue
		}
		got := found[0]
		if got.Rule.ID != f.id || string(got.Ref.Kind)+"/"+got.Ref.Name != f.object || !strings.Contains(got.Cause, f.cause) || got.Remedy == "" {
			t.Errorf("%s of %s (%s): found %s of %v: %s; %s", f.id, f.object, f.cause, got.Rule.ID, got.Ref, got.Cause, got.Remedy)
		}
	}
	seen["TargetLunsUnusable"] = true // TestFaultsThatFollowFromADeadGatewayAreItsConsequences
	seen["ClockSkew"] = true          // sluicectl finds it
	for _, rule := range findings.Rules {
		if !seen[rule.ID] {
			t.Errorf("no test induces %s", rule.ID)
		}
	}
}

// So a reason that is added to package decide, and forgotten here, is still reported.
func TestEveryDegradedObjectIsAFindingWhateverTheReason(t *testing.T) {
	for kind, degrade := range map[string]func(*system){
		"Gateway":     func(s *system) { s.gateway("gw-1").Status.Conditions = degraded("Novel", "why") },
		"StoragePool": func(s *system) { s.pool().Status.Conditions = degraded("Novel", "why") },
		"Volume":      func(s *system) { s.volume().Status.Conditions = degraded("Novel", "why") },
		"Target":      func(s *system) { s.target().Status.Conditions = degraded("Novel", "why") },
	} {
		s := healthy()
		degrade(s)
		if items := s.items(); len(items) != 1 || !strings.Contains(items[0].Cause, "why") || string(items[0].Ref.Kind) != kind {
			t.Errorf("%s: %+v", kind, items)
		}
	}
}

func TestEqualFaultsAreOneFindingWithAllObjects(t *testing.T) {
	s := healthy()
	for _, name := range []string{"b", "a", "c"} {
		s.put(&model.Host{Meta: model.Meta{Name: name}})
	}
	found := findings.Group(s.items())
	if len(found) != 1 || len(found[0].Objects) != 3 || found[0].Ref.Name != "a" || found[0].Objects[2].Name != "c" {
		t.Errorf("%+v", found)
	}
}

// The node of a local pool fails: the gateway is the cause, everything else follows.
func TestFaultsThatFollowFromADeadGatewayAreItsConsequences(t *testing.T) {
	s := healthy()
	s.gateway("gw-1").Status.Health = model.GatewayDead
	s.pool().Status.Conditions = unready(model.ReasonNoGateway, "no gateway that has a stream reports it")
	s.volume().Status.Conditions = unready(model.ReasonOwnerDead, "its owner is gone")
	s.target().Status.PathSet = []uint32{2}
	found := findings.Group(s.items())
	if len(found) != 1 {
		t.Fatalf("%d findings: %+v", len(found), found)
	}
	if found[0].Rule.ID != "GatewayDead" || found[0].Worst != findings.Critical || found[0].Severity != findings.Warning {
		t.Errorf("%+v", found[0])
	}
	var ids []string
	for _, item := range found[0].Consequences {
		ids = append(ids, item.Rule.ID)
	}
	want := []string{"FewerPaths", "PathsNotRedundant", "PoolWithoutGateway", "TargetLunsUnusable", "VolumeWithoutOwner"}
	slices.Sort(ids)
	if !slices.Equal(ids, want) {
		t.Errorf("consequences %v, wanted %v", ids, want)
	}
}

func TestATargetOfWhichOneLunWorksIsUsable(t *testing.T) {
	s := healthy()
	s.put(&model.Volume{Meta: model.Meta{Name: "logs"}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{CapacityBytes: 1}})
	s.target().Spec.Luns = append(s.target().Spec.Luns, model.TargetLun{ID: 1, Volume: "logs"})
	s.volume().Status.Ownership.State = model.Orphaned
	for _, item := range s.items() {
		if item.Ref.Kind == model.KindTarget {
			t.Errorf("%+v", item)
		}
	}
}

func TestAPoolThatNoHostNeedsIsNoCriticalFinding(t *testing.T) {
	s := healthy()
	s.put(&model.StoragePool{Meta: model.Meta{Name: "spare"}, Spec: model.StoragePoolSpec{WarnPercent: 85,
		Local: &model.LocalPool{Node: "node-9", Directory: "/srv"}}})
	if items := s.items(); len(items) != 1 || items[0].Severity != findings.Advice {
		t.Errorf("%+v", items)
	}
}

// The condition Refused stays until the next admission.
func TestAFormerRefusalDoesNotHideThatAGatewayIsDrainedOrDead(t *testing.T) {
	for health, want := range map[model.GatewayHealth]string{model.GatewayDrained: "GatewayDrained", model.GatewayDead: "GatewayDead"} {
		s := healthy()
		g := s.gateway("gw-2")
		g.Status.Health, g.Status.LastRefused = health, now.Add(-time.Minute)
		g.Status.Conditions = append(g.Status.Conditions, condition(model.ConditionRefused, model.ConditionTrue, "PortsInUse", "in use"))
		ids := map[string]bool{}
		for _, item := range s.items() {
			ids[item.Rule.ID] = true
		}
		if !ids[want] || ids["GatewayRefused"] || ids["GatewayStartedTwice"] {
			t.Errorf("%s: %v", health, ids)
		}
	}
}

func TestAProcessThatIsNoLongerRefusedIsNoFindingWhileAnotherProcessIsTheGateway(t *testing.T) {
	s := healthy()
	s.gateway("gw-1").Status.Conditions = []model.Condition{condition(model.ConditionRefused, model.ConditionTrue, "PortsInUse", "in use")}
	s.gateway("gw-1").Status.LastRefused = now.Add(-time.Minute)
	if items := s.items(); len(items) > 0 {
		t.Errorf("%+v", items)
	}
}

func TestAVolumeThatAGatewayIsTakingOverIsNoFinding(t *testing.T) {
	s := healthy()
	s.volume().Status.Conditions = unready("Opening", "a gateway takes it")
	s.volume().Status.Conditions[0].LastTransitionTime = now.Add(-time.Second)
	if items := s.items(); len(items) > 0 {
		t.Errorf("%+v", items)
	}
}

// One gateway finds another disk in the place of the pool. The other gateways serve the pool's volumes.
func TestAPoolThatOneOfSeveralGatewaysDoesNotIdentifyIsAWarning(t *testing.T) {
	s := healthy()
	s.pool().Status.Conditions = degraded(model.ReasonPoolNotIdentified, "gateway gw-2: no marker")
	if items := s.items(); len(items) != 1 || items[0].Rule.ID != "PoolNotIdentified" || items[0].Severity != findings.Warning {
		t.Errorf("%+v", items)
	}
}

func TestADeviceThatWasTakenOutIsAFindingOfThePoolWithItsVolumes(t *testing.T) {
	s := healthy()
	s.pool().Status.Conditions = degraded(model.ReasonTakenOut, "device /dev/sdb was taken out")
	s.volume().Status.Conditions = degraded(model.ReasonTakenOut, "device /dev/sdb was taken out")
	found := findings.Group(s.items())
	if len(found) != 1 || found[0].Ref.Kind != model.KindStoragePool || len(found[0].Consequences) != 1 {
		t.Errorf("%+v", found)
	}
}

func TestASystemOf1000VolumesHasNoFinding(t *testing.T) {
	s := healthy()
	for i := range 1000 {
		name := "v" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
		s.put(&model.Volume{Meta: model.Meta{Name: name}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{CapacityBytes: 1}})
	}
	if items := s.items(); len(items) > 0 {
		t.Errorf("%d findings, such as %+v", len(items), items[0])
	}
}

// Set SLUICE_WRITE_RUNBOOK=1 to write the page.
func TestTheRunbookIsThatOfTheRules(t *testing.T) {
	const page = "../../../docs/RUNBOOK.md"
	if os.Getenv("SLUICE_WRITE_RUNBOOK") != "" {
		if err := os.WriteFile(page, []byte(findings.Runbook()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != findings.Runbook() {
		t.Errorf("docs/RUNBOOK.md is not current (%v): make generate", err)
	}
}
