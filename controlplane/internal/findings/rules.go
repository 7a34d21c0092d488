package findings

import "strings"

// Rule is one kind of fault: a section of the runbook.
type Rule struct {
	// ID is one CamelCase word for programs. It never changes.
	ID       string
	Severity Severity
	// Meaning says what is wrong, Effect what hosts notice, and Remedy what an administrator does. Each is a text of the runbook.
	Meaning, Effect, Remedy string
	order                   int
}

// Link is the section of the runbook about a rule, relative to the root of the source.
func (r *Rule) Link() string { return runbookPage + "#" + strings.ToLower(r.ID) }

// Rules has every kind of fault, in the order of the runbook.
var Rules []*Rule

func rule(id string, severity Severity, meaning, effect, remedy string) *Rule {
	r := &Rule{ID: id, Severity: severity, Meaning: meaning, Effect: effect, Remedy: remedy, order: len(Rules)}
	Rules = append(Rules, r)
	return r
}

const noEffect = "Hosts notice nothing."

// The control plane.
var (
	ruleStoreFull = rule("StoreFull", Critical,
		"etcd has no space left and refuses every change.",
		"Hosts continue. No failover, no move and no other change happens.",
		"Compact and defragment etcd, then disarm its alarm: `etcdctl compact`, `etcdctl defrag`, `etcdctl alarm disarm`. Give it a larger "+
			"`--quota-backend-bytes`. An embedded etcd frees its history itself: delete objects and snapshots that are not needed.")
	ruleStoreUnreachable = rule("StoreUnreachable", Critical,
		"etcd does not answer a replica of the control plane.",
		"Hosts continue. No failover, no move and no other change happens. What this replica shows is as old as the fault.",
		"Look at etcd, and at the network between it and the replica.")
	ruleNoLeader = rule("NoLeader", Critical,
		"No replica of the control plane leads.",
		"Hosts continue. Nothing fails over.",
		"Look at the logs of the replicas, and at etcd: a leader is elected within seconds once a replica reaches etcd.")
	ruleStoreNearlyFull = rule("StoreNearlyFull", Warning,
		"etcd has used more than 80 % of its space. It refuses every change when the space is used up.",
		noEffect,
		"Give etcd a larger `--quota-backend-bytes`, or delete objects that are not needed, then defragment it.")
	ruleStoreMemberDown = rule("StoreMemberDown", Warning,
		"A member of etcd does not answer a replica of the control plane, and others do.",
		"Hosts notice nothing. If the majority of the members is lost, nothing fails over.",
		"Look at that member, and at the network between it and the replica.")
	ruleCertificateExpired = rule("CertificateExpired", Critical,
		"A certificate has expired.",
		"Its holder cannot connect to the control plane any more. A gateway without a stream continues to serve.",
		"Issue another certificate: `sluice-controlplane certs`, or where the certificates of the system come from.")
	ruleCertificateEndsSoon = rule("CertificateEndsSoon", Warning,
		"A certificate ends within 30 days. cert-manager, the operator and `sluice-certificates.timer` renew certificates 120 days before "+
			"their end, so renewal does not work.",
		"Nothing until then. Afterwards the holder cannot connect.",
		"Issue another certificate: `sluicectl node renew` on a server that `sluicectl node` has set up, or `sluice-controlplane certs`. Look at "+
			"the logs of the operator, of cert-manager, or of `sluice-certificates.service`.")
	ruleBackupOld = rule("BackupOld", Warning,
		"The last backup of the store is older than `--backup-limit` of the replicas (8 days). Only backups through the API count.",
		"Nothing now. If the store is lost, so are all changes since that backup, and access to volumes that were created since.",
		"Run `sluicectl backup FILE` regularly, and keep the file and the key file elsewhere. If another program makes backups of etcd, start "+
			"the replicas with `--backup-limit=0`.")
	ruleOneReplica = rule("OneReplica", Advice,
		"The control plane is one replica, with its store inside or with the other replicas down.",
		"Hosts continue while it is down, but nothing fails over.",
		"Let two more servers join: their replicas become members of the store. Or run an etcd of three members, and replicas with "+
			"`--etcd-endpoints` and one `--key-file`. If there are others, look at their logs.")
	ruleStoreNotRedundant = rule("StoreNotRedundant", Advice,
		"etcd has one or two members that vote.",
		"Hosts continue if a member is lost, but nothing fails over until it is back. With two members, the loss of either has that effect.",
		"Add members until there are three. Where etcd runs inside the replicas, let another server join. To an external etcd, add members "+
			"with `etcdctl member add`, then name all of them in `--etcd-endpoints`.")
	ruleNoGatewayPool = rule("NoGateway", Advice,
		"A gateway pool has no gateway.",
		"Its targets are not exported.",
		"Add a gateway: `sluicectl gateway create`.")
)

// ClockSkew is found by sluicectl, which compares the clock of the control plane with that of its own machine.
var _ = rule("ClockSkew", Warning,
	"The clock of the control plane differs by more than 5 s from that of the machine on which sluicectl runs.",
	"Nothing. Logs and events of different machines cannot be put in order.",
	"Have chrony or another NTP client run on both.")

// Gateways.
var (
	ruleGatewayDead = rule("GatewayDead", Warning,
		"A gateway has lost its stream to the control plane, and its peers do not reach it. It is fenced from its volumes.",
		"Paths through it fail. Other gateways have taken over its volumes where they reach the data.",
		"Look at its node and restart it. It returns by itself.")
	ruleFencingRateLimited = rule("FencingRateLimited", Critical,
		"A gateway seems to be dead, but two nodes were declared dead within the last 30 s. So the network or the control plane itself is "+
			"more likely at fault, and the control plane waits (DESIGN R1).",
		"The volumes of that gateway wait.",
		"Look at the network between the nodes. Restart the gateway if its node is down.")
	ruleGatewayRefused = rule("GatewayRefused", Warning,
		"A process that names the gateway was refused, and no other process is the gateway.",
		"The gateway serves nothing.",
		"The message of the condition Refused names the reason and the remedy: `sluicectl gateway describe NAME`.")
	ruleGatewayStartedTwice = rule("GatewayStartedTwice", Warning,
		"A process that names the gateway was refused within the last 20 s, while another process is the gateway.",
		"Nothing now: the refused process owns nothing, and it tries again. It becomes the gateway when the other process ends.",
		"Stop the process that should not be the gateway, or give each a name of its own. The finding ends 20 s after the last attempt.")
	ruleGatewayNotServing = rule("GatewayNotServing", Warning,
		"A gateway has a stream to the control plane, but hosts or other gateways do not reach its ports. It gets no volume, and its paths "+
			"do not count.",
		"Paths through it fail.",
		"Look at the addresses of its portals and its forwarding port, at firewalls, and at the network between the nodes.")
	ruleGatewayPeersLost = rule("GatewayPeersLost", Warning,
		"Another gateway cannot forward commands to the gateway: it does not reach its forwarding port, or is refused the login.",
		"Commands that hosts send to the other gateway, for volumes of this one, are not executed (NOT READY). Hosts need their other paths.",
		"Look at firewalls and the network between the two nodes. If the login is refused, the message names the reason; restart the gateway "+
			"that is refused, so that both receive the same keys.")
	ruleGatewayDisconnected = rule("GatewayDisconnected", Warning,
		"A gateway has no stream to the control plane. Its peers reach it, or no peer has reported that it does not.",
		"Nothing: it continues to serve (DESIGN R3). It receives no changes.",
		"Look at the network between its node and the control plane, and at its log.")
	ruleGatewayNotApplied = rule("GatewayNotApplied", Warning,
		"A gateway could not apply a part of its desired state.",
		"What the gateway could not apply does not work there.",
		"The message names the part and the reason.")
	ruleDrainBlocked = rule("DrainBlocked", Warning,
		"A gateway is to be drained, and volumes or targets cannot leave it.",
		"Nothing: the gateway continues to serve them.",
		"The message names what cannot leave, and the reason.")
	ruleClockAhead = rule("ClockAhead", Warning,
		"The clock of a replica or of a gateway's last contact is ahead of the clock of the replica that answers.",
		"Nothing. Logs and events of different machines cannot be put in order.",
		"Have chrony or another NTP client run on all machines.")
	ruleVersionSkew = rule("VersionSkew", Advice,
		"A gateway runs another version than the control plane.",
		noEffect,
		"Upgrade it: drain it, replace the program, start it, undrain it.")
	ruleGatewayNew = rule("GatewayNeverConnected", Advice,
		"A Gateway object exists, and no process of that name has connected.",
		"The gateway serves nothing.",
		"Start sluice-gateway on its node with `--gateway-name`.")
	ruleGatewayDrained = rule("GatewayDrained", Advice,
		"A gateway is drained: it owns no volume and exports no target.",
		noEffect,
		"When its maintenance is over: `sluicectl gateway undrain NAME`.")
	ruleGatewayDegraded = rule("GatewayDegraded", Warning,
		"The condition Degraded of a gateway holds for a reason that has no section of its own.",
		"It depends on the reason.",
		"The message names the reason: `sluicectl gateway describe NAME`.")
	ruleNotRedundantPool = rule("GatewaysNotRedundant", Advice,
		"One failure disables every gateway of a gateway pool: it has one gateway, or all are on one node.",
		"After that failure hosts reach none of its targets.",
		"Add a gateway on another node: `sluicectl gateway create --pool POOL --node NODE`.")
	ruleUnknownSwitch = rule("UnknownSwitch", Advice,
		"A portal or a host names a switch that its fabric does not have.",
		"Nothing fails. Placement cannot choose the nearest portal.",
		"Correct the name, or add the switch to `spec.switches` of the fabric: `sluicectl apply`.")
)

// Storage pools.
var (
	rulePoolNotIdentified = rule("PoolNotIdentified", Critical,
		"A gateway finds storage without the pool's marker in the place of the pool: it may be other storage.",
		"Gateways open, create and delete nothing there.",
		"Mount the right storage. If it was replaced deliberately: `sluicectl pool adopt NAME`.")
	rulePoolUnreachable = rule("PoolUnreachable", Critical,
		"Gateways that should reach a pool report that they do not.",
		"Commands for its volumes wait or fail.",
		"Look at the storage, and at the logs of the gateways. The message has the error.")
	rulePoolNoGateway = rule("PoolWithoutGateway", Critical,
		"No gateway that reaches a pool is ready.",
		"Hosts cannot use volumes of the pool.",
		"Start the gateways of its node, or of its gateway pools: `sluicectl gateway list`.")
	ruleImageMissing = rule("ImageMissing", Critical,
		"Images of volumes are missing in a pool.",
		"Hosts cannot use these volumes after the next move, or already now.",
		"Restore the images, or delete the volumes. `sluicectl pool get NAME -o yaml` lists them in `status.missingImages`.")
	ruleDeviceTakenOut = rule("DeviceTakenOut", Warning,
		"A device that holds a volume was removed from its pool.",
		"Nothing now: the owner continues to serve it. No gateway can open the volume again.",
		"Put the device back into `spec.local.devices`, or copy the data elsewhere and delete the volume.")
	rulePoolNearlyFull = rule("PoolNearlyFull", Warning,
		"A pool has reached its warning threshold (`spec.warnPercent`).",
		"Nothing now. When the pool is full, writes to blocks without space fail with 07/27/07 (SBC-4 §4.7.3.6).",
		"Enlarge it, or delete volumes and snapshots that are not needed.")
	ruleDevicesUnusable = rule("DevicesUnusable", Warning,
		"Devices of a pool neither hold a volume nor can hold one.",
		noEffect,
		"The message names each device with the reason and the remedy.")
	rulePoolDegraded = rule("PoolDegraded", Warning,
		"Some gateways report a problem with a pool that other gateways reach.",
		"Nothing while the other gateways own the volumes.",
		"The message names the gateway and its error.")
	ruleOrphanedImages = rule("OrphanedImages", Advice,
		"A pool has images with names of volumes that do not exist.",
		"Nothing. They use space.",
		"`sluicectl pool get NAME -o yaml` lists them in `status.orphanedImages`. Look at each, then remove it by the means of the storage.")
)

// Volumes and snapshots.
var (
	ruleVolumeWithoutOwner = rule("VolumeWithoutOwner", Critical,
		"A volume that a target exports has no gateway that serves it.",
		"Commands wait (02/04/0A) while a takeover is possible, and fail (02/04/0C) otherwise.",
		"Bring back a gateway that reaches the data: `sluicectl gateway list`. The message says what prevents a takeover.")
	ruleVolumeUnusable = rule("VolumeDataUnusable", Critical,
		"Gateways cannot serve the data of a volume.",
		"Commands fail with NOT READY.",
		"The message names the cause and the remedy. After the repair, `sluicectl volume move NAME` opens the data again.")
	ruleVolumeStuck = rule("VolumeStuck", Critical,
		"The medium of a volume completes none of the commands of hosts for 1.4 s, or one of them takes more than 10 s.",
		"Commands wait, and new ones get BUSY beyond a limit. Other volumes are not affected.",
		"Look at the disk, the file system or the Ceph pool below it. Hosts continue when it does.")
	ruleVolumeErrors = rule("VolumeMediumErrors", Critical,
		"Commands of hosts ended with MEDIUM ERROR or HARDWARE ERROR (SPC-5 §4.4.8) within the last 30 s.",
		"These commands failed. Commands for other blocks may succeed.",
		"Look at the kernel log of the owner's node, and at the disk, the file system or the Ceph pool below the volume. The finding ends 30 s "+
			"after the last such command.")
	ruleVolumeMisplaced = rule("VolumeDataMisplaced", Warning,
		"The volume's data has another name or place now, or another file or image has its name. The owner still serves the right data.",
		"Nothing now. The next opening will fail.",
		"Rename the former file back, or restore the mount, before the volume moves.")
	ruleVolumeNotMade = rule("VolumeNotMade", Warning,
		"The data of a new volume, or of a copy, cannot be made.",
		"The volume cannot be used.",
		"The message has the reason. The control plane tries again, unless the pool can never do it.")
	ruleVolumeNotApplied = rule("VolumeNotApplied", Warning,
		"A gateway could not apply the desired state of a volume.",
		"Paths through that gateway fail.",
		"The message names the gateway and the reason.")
	ruleVolumeNoStream = rule("VolumeOwnerDisconnected", Warning,
		"The owner of a volume has no stream to the control plane.",
		"Nothing: the owner continues to serve (DESIGN R3).",
		"Look at the network between the owner's node and the control plane.")
	ruleVolumeDegraded = rule("VolumeDegraded", Warning,
		"The condition Degraded of a volume holds for a reason that has no section of its own.",
		"It depends on the reason.",
		"The message names the reason: `sluicectl volume describe NAME`.")
	ruleHeld = rule("OperationsHeld", Warning,
		"The store was restored from a backup, and operations that were pending then wait for a confirmation.",
		"Nothing. A volume whose rollback is held has no owner.",
		"`sluicectl restore list`, then `sluicectl restore confirm` or `discard` for each object.")
	ruleDeletionWaits = rule("DeletionWaits", Advice,
		"A deletion was requested more than a minute ago, and something prevents it.",
		noEffect,
		"The message says what the deletion waits for.")
	ruleRequestFailed = rule("RequestFailed", Advice,
		"The last requested move or rollback was not carried out. The next request replaces this report.",
		"Nothing: the volume is as before.",
		"The message names the reason. Request it again when the reason has ended.")
	ruleSnapshotFailed = rule("SnapshotFailed", Warning,
		"A snapshot cannot be taken or deleted.",
		noEffect,
		"The message has the reason. If the pool does not support snapshots, delete the Snapshot.")
)

// Targets and hosts.
var (
	ruleTargetNotExported = rule("TargetNotExported", Critical,
		"No gateway that is ready exports a target.",
		"Hosts cannot reach it.",
		"Add gateways to its gateway pool, or bring them back: `sluicectl gateway list`.")
	ruleTargetUnusable = rule("TargetLunsUnusable", Critical,
		"None of a target's LUNs can be used.",
		"Hosts can log in, and their commands wait or fail.",
		"Correct the faults of its volumes.")
	ruleTargetNotApplied = rule("TargetNotApplied", Warning,
		"A gateway of the path set could not apply a target.",
		"Paths through that gateway fail.",
		"The message names the gateway and the reason.")
	ruleFewerPaths = rule("FewerPaths", Warning,
		"Fewer gateways export a target than `spec.paths` requires.",
		"Hosts have fewer paths.",
		"Add gateways to its gateway pool, or bring them back.")
	ruleNotRedundant = rule("PathsNotRedundant", Warning,
		"One failure would take all paths of a host to a target.",
		"Nothing now.",
		"The message names the single point of failure. Add gateways on other nodes, fabrics or switches, or bring them back.")
	ruleTargetDegraded = rule("TargetDegraded", Warning,
		"A condition of a target reports a problem that has no section of its own.",
		"It depends on the reason.",
		"The message names the reason: `sluicectl target describe NAME`.")
	ruleOnePath = rule("TargetHasOnePath", Advice,
		"A target is to have one path (`spec.paths` is 1).",
		"If that gateway fails, hosts have no path.",
		"Set `spec.paths` to 2 or more.")
	ruleNoHosts = rule("TargetWithoutHosts", Advice,
		"A target permits no host.",
		"No host can log in.",
		"Name its hosts: `sluicectl target add-host`, or `spec.hosts` of the Target.")
	ruleNoLuns = rule("TargetWithoutLuns", Advice,
		"A target has no LUN.",
		"Hosts find no disk.",
		"Map a volume: `sluicectl target add-lun`, or `spec.luns` of the Target.")
	ruleHostLoginRefused = rule("HostLoginRefused", Warning,
		"A gateway refused a login within the last 30 s, by a status of class 2 or 3 (RFC 7143 §11.13.5) other than 0201. If no host has "+
			"the initiator, the finding is advice about the gateway: any program on the network can log in.",
		"The path does not come into use.",
		"The message has the status with its cause. 0203: name the host in `spec.hosts` of the target, or correct the target's name on the "+
			"host. 0302: end sessions, or raise the limit that the message names. The finding ends with the next session from that "+
			"address, or 30 s after the last refused login.")
	ruleHostAuthentication = rule("HostAuthenticationFailing", Warning,
		"A gateway refused a login within the last 30 s because the initiator did not authenticate (status 0201).",
		"The path does not come into use. The gateway delays further attempts of that address and name.",
		"Compare the CHAP name and secret of the host with `spec.chap` and `spec.mutualChap` of the Host. If the address is not the host's, "+
			"find out which program guesses secrets there. The finding ends with the next session from that address, or 30 s "+
			"after the last failure.")
	ruleHostPingsLost = rule("HostPingsLost", Warning,
		"A host did not answer pings (NOP-In) of a gateway within the last 30 s, so the gateway closed its connection.",
		"The path was interrupted. The host logs in again, and uses its other paths meanwhile.",
		"Look at the load of the host, and at the network between the address and the portal: lost packets, and an MTU that one switch does not "+
			"carry. The finding ends with the next session from that address, or 30 s after the last lost ping.")
	ruleHostDigestErrors = rule("HostDigestErrors", Warning,
		"A gateway received PDUs of a host with a wrong CRC32C digest within the last 30 s (RFC 7143 §7.8).",
		"Commands are repeated, and a wrong header digest closes the connection. No damaged data is written.",
		"Replace what damages data between the address and the portal: a network card, a cable, a switch, or their checksum offloads. The "+
			"finding ends 30 s after the last error.")
	ruleHostPathMissing = rule("HostPathMissing", Warning,
		"A host has had sessions on some, but not all of its paths to a target for more than 30 s. A host that names no switch in "+
			"`spec.switches` needs one session at each gateway of the target; otherwise one at each portal on its fabrics.",
		"The host has fewer paths. If the used ones fail, it loses the target.",
		"Log in at the missing portals: `sluicectl host-config HOST` prints the script. If it logs in on purpose at some portals "+
			"only, lower `spec.paths` of the target.")
	ruleHostWrongFabric = rule("HostPathOnWrongFabric", Warning,
		"For more than 30 s a host has had a session on a fabric to which it is not attached according to `spec.switches`, at a gateway that "+
			"has a portal on a fabric of the host.",
		"Commands take a longer way, and the paths of the host may fail together.",
		"Log in at the portals that `sluicectl host-config HOST` names, or correct `spec.switches` of the host.")
	ruleUnauthenticated = rule("HostUnauthenticated", Advice,
		"A host may log in without authentication: any machine that uses its initiator name can read and write its volumes.",
		noEffect,
		"Give it CHAP: `sluicectl apply` with `spec.chap`, then the same name and secret on the host.")
)
