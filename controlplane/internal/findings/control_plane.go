package findings

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// maxSkew is the tolerated difference of clocks. With more, logs and events of two machines cannot be put in order.
	maxSkew = 5 * time.Second
	// expiresSoon is the remaining lifetime of a certificate from which on it is a finding.
	expiresSoon = 30 * 24 * time.Hour
	// nearlyFullPercent is the used share of etcd's space from which on it is a finding.
	nearlyFullPercent = 80
	// pathSettles is the time for which a path of a host must be missing or wrong until it is a finding. Hosts log in one path after
	// the other.
	pathSettles = 30 * time.Second
)

// System has the facts about the control plane that its objects do not contain.
type System struct {
	// Time is the clock of the replica.
	Time time.Time
	// Version of the replica's program; empty: unknown, and gateways are not compared with it.
	Version string
	// EmbeddedStore: the store is in the replica and has no other member, so there is no other replica.
	EmbeddedStore bool
	// Replicas is the number of replicas that lead or wait to lead; 0: unknown.
	Replicas int
	// NoLeader: the replica finds that no replica leads.
	NoLeader bool
	// StoreProblem is why etcd does not answer; empty: it does.
	StoreProblem string
	// StoreFull: etcd refuses writes because of its size.
	StoreFull bool
	// SilentMembers has the endpoints of etcd that do not answer, while others do.
	SilentMembers []string
	// StoreMembers is the number of etcd's members that vote; 0: unknown.
	StoreMembers int
	// StoreUsed and StoreQuota are etcd's size and its limit in bytes; a quota of 0: unknown.
	StoreUsed, StoreQuota int64
	Certificates          []Certificate
	// LastBackup is the time of the store's last backup; zero: none was made.
	LastBackup time.Time
	// Founded is the time at which the system was made; zero: unknown, and the lack of a backup is no finding.
	Founded time.Time
	// BackupLimit is the age of the last backup from which on it is a finding; 0: it is none at any age.
	BackupLimit time.Duration
	// Leads: the replica leads.
	Leads bool
	// HostFaults are the gateways' reports of what hosts met. Reports of unknown gateways are ignored.
	HostFaults []*model.HostFaultReport
	// Sessions are those of all gateways.
	Sessions []*model.Session
}

// Certificate has the expiry of a certificate of the replica or of one of its callers.
type Certificate struct {
	// Role and Holder as in api.Certificate.
	Role, Holder string
	End          time.Time
}

func (s *survey) controlPlane() {
	self := Ref{Kind: KindControlPlane}
	switch used := s.system.StoreUsed * 100 / max(s.system.StoreQuota, 1); {
	case s.system.StoreProblem != "":
		s.add(ruleStoreUnreachable, self, "its store, etcd, does not answer: "+s.system.StoreProblem,
			"look at etcd, and at the network between it and the replica", time.Time{})
	case s.system.StoreFull:
		s.add(ruleStoreFull, self, "its store, etcd, has no space left and refuses every change",
			"give etcd a larger quota or free space, then disarm its alarm: `etcdctl alarm disarm`", time.Time{})
	case s.system.StoreQuota > 0 && used >= nearlyFullPercent:
		s.add(ruleStoreNearlyFull, self, fmt.Sprintf("its store, etcd, has used more than %d %% of its space", nearlyFullPercent),
			"give etcd a larger quota (--quota-backend-bytes), or delete objects that are not needed", time.Time{})
	}
	if len(s.system.SilentMembers) > 0 && s.system.StoreProblem == "" {
		s.add(ruleStoreMemberDown, self, "members of its store, etcd, do not answer: "+strings.Join(s.system.SilentMembers, ", "),
			"look at these members, and at the network between them and the replica", time.Time{})
	}
	if s.system.NoLeader {
		s.add(ruleNoLeader, self, "has no leader: nothing fails over", "look at the logs of its replicas, and at etcd", time.Time{})
	}
	switch {
	case s.system.EmbeddedStore:
		s.add(ruleOneReplica, self, "is one replica, with its store inside: while it is down nothing fails over",
			"let two more servers join, or run replicas with an external etcd of three members (--etcd-endpoints)", time.Time{})
	case s.system.StoreMembers == 1 || s.system.StoreMembers == 2:
		s.add(ruleStoreNotRedundant, self, fmt.Sprintf("its store, etcd, has %d of the 3 members that it needs to survive the loss of one",
			s.system.StoreMembers), "let another server join; to an external etcd, add members: `etcdctl member add`", time.Time{})
	}
	if s.system.Replicas == 1 && !s.system.EmbeddedStore {
		s.add(ruleOneReplica, self, "is one replica: while it is down nothing fails over",
			"start a second replica, or look at the log of the one that has ended", time.Time{})
	}
	s.backup(self)
	for _, certificate := range s.system.Certificates {
		s.certificate(certificate)
	}
}

// backup finds that the last backup of the store is old. A new system has the same time for its first one.
func (s *survey) backup(self Ref) {
	limit, last := s.system.BackupLimit, s.system.LastBackup
	cause := "has no backup of its store"
	if last.IsZero() {
		last = s.system.Founded
	} else {
		cause = "has no backup of its store since " + last.UTC().Format(time.DateOnly)
	}
	if limit == 0 || last.IsZero() || s.system.Time.Sub(last) < limit {
		return
	}
	s.add(ruleBackupOld, self, cause, "`sluicectl backup FILE`, regularly; if another program makes backups of etcd, start the replicas "+
		"with --backup-limit=0", last.Add(limit))
}

func (s *survey) certificate(c Certificate) {
	ref := Ref{KindCertificate, c.Role + " " + c.Holder}
	left := c.End.Sub(s.system.Time)
	remedy := "issue another: `sluice-controlplane certs`, or where the system's certificates come from"
	switch day := c.End.UTC().Format(time.DateOnly); {
	case left <= 0:
		s.add(ruleCertificateExpired, ref, "has expired on "+day, remedy, c.End)
	case left <= expiresSoon:
		s.add(ruleCertificateEndsSoon, ref, fmt.Sprintf("expires in %d days, on %s", int(left.Hours()/24), day), remedy,
			c.End.Add(-expiresSoon))
	}
}

// ahead finds a gateway whose last contact lies in the future: the replica that received it has another clock.
func (s *survey) ahead(gateway *model.Gateway) {
	if by := gateway.Status.LastSeen.Sub(s.system.Time); by > maxSkew && !s.system.Time.IsZero() {
		s.add(ruleClockAhead, of(gateway), fmt.Sprintf("was last seen %s in the future: clocks differ", by.Round(time.Second)),
			"have chrony or another NTP client run on the machines of the control plane", time.Time{})
	}
}
