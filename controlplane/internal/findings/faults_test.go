package findings_test

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

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
	{"StoreNotRedundant", "ControlPlane/", "has 1 of the 3 members", func(s *system) { s.facts.StoreMembers = 1 }},
	{"StoreNotRedundant", "ControlPlane/", "has 2 of the 3 members", func(s *system) { s.facts.StoreMembers = 2 }},
	{"BackupOld", "ControlPlane/", "has no backup of its store since 2026-11-19", func(s *system) { s.facts.LastBackup = now.Add(-8 * 24 * time.Hour) }},
	{"BackupOld", "ControlPlane/", "has no backup of its store", func(s *system) { s.facts.LastBackup, s.facts.Founded = time.Time{}, now.Add(-8*24*time.Hour) }},
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
	{"GatewayPeersLost", "Gateway/gw-2", "cannot be forwarded to: gateway gw-1 receives nothing from it", func(s *system) {
		g := s.gateway("gw-2")
		g.Status.Conditions = append(g.Status.Conditions, model.Condition{
			Type: model.ConditionDegraded, Status: model.ConditionTrue, Reason: model.ReasonPeersLost,
			Message: "gateway gw-1 receives nothing from it",
		})
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
	{"VolumeWithoutOwner", "Volume/orders", "has no owner: hosts cannot use it (no gateway)",
		func(s *system) { s.volume().Status.Conditions = unready(model.ReasonNoGateway, "no gateway") }},
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
