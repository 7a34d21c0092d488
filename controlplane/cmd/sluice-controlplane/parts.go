package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/dispatch"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/leader"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	"sluice.dev/sluice/controlplane/internal/web"
)

// pruneEvery is the interval at which old events are deleted.
const pruneEvery = 10 * time.Minute

// parts are the components beside the API.
type parts struct {
	store   *store.Store
	view    *view.Cache
	streams *dispatch.Service
	leader  *leader.Leader
	events  *events
	// certificates of this process and of its callers.
	certificates *server.Certificates
	findings     *api.Findings
	loads        *api.Loads
	// console is nil without a console port.
	console *web.Server
	log     *slog.Logger
}

func (s *settings) parts(kept *store.Store, opened *storage, log *slog.Logger, registry prometheus.Registerer) (*parts, error) {
	p := &parts{store: kept, view: view.New(kept, log), log: log,
		events: newEvents(store.NewEventLog(kept), log)}
	p.certificates = server.NewCertificates([]string{s.tls.CA, s.tls.Certificate, s.etcdTLS.CA, s.etcdTLS.Certificate}, log,
		p.certificateEnds, registry)
	p.findings = api.NewFindings(kept, p.view, s.facts(kept, opened, p.certificates), registry)
	p.loads = api.NewLoads(kept, p.view, log)
	p.findings.RecordEvents(p.events.record, log)
	p.streams = dispatch.New(dispatch.Options{
		Store: kept, View: p.view, Log: log, Replica: s.replica(), ClusterID: s.cluster, OUI: s.oui,
		Registry: registry, Events: p.events,
		Caller: func(ctx context.Context) (string, bool) {
			if identity := server.IdentityOf(ctx); identity.Role == server.RoleGateway {
				return identity.Name, true
			}
			return "", false // plain connection on loopback: no certificate is required
		},
	})
	var err error
	p.leader, err = leader.New(leader.Config{
		Store: kept, Replica: s.replica(), Events: p.events, Log: log, Registerer: registry,
		BlocklistFor: s.blocklistFor,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// facts reads what findings need to know about the control plane.
func (s *settings) facts(kept *store.Store, opened *storage, certificates *server.Certificates) api.Facts {
	return func(ctx context.Context) findings.System {
		facts := findings.System{Version: version, EmbeddedStore: s.alone(), BackupLimit: s.backupLimit}
		for _, certificate := range certificates.List() {
			facts.Certificates = append(facts.Certificates, findings.Certificate(certificate))
		}
		space, err := etcd.SpaceOf(ctx, opened.client)
		leader := ""
		if err == nil {
			leader, err = kept.Leader(ctx)
		}
		if err == nil {
			facts.Replicas, err = kept.Replicas(ctx)
		}
		var backups store.Backups
		if err == nil {
			backups, err = kept.Backups(ctx)
		}
		if err != nil {
			facts.StoreProblem = err.Error()
			return facts
		}
		facts.LastBackup, facts.Founded = backups.Last, backups.Since
		facts.StoreUsed, facts.StoreQuota, facts.StoreFull, facts.SilentMembers = space.Used, space.Quota, space.Full, space.Silent
		facts.StoreMembers = space.Members
		if opened.embedded != nil {
			facts.EmbeddedStore = space.Members == 1
			facts.SilentMembers = silentMembers(ctx, opened.embedded)
		}
		facts.NoLeader, facts.Leads = leader == "", leader == s.replica()
		return facts
	}
}

// silentMembers returns the members of the embedded etcd that this one does not reach.
func silentMembers(ctx context.Context, embedded *etcd.Embedded) []string {
	members, err := embedded.Members(ctx)
	if err != nil {
		return nil // no majority: the store does not answer, which is found separately
	}
	var silent []string
	for _, member := range members {
		if !member.Reachable {
			silent = append(silent, cmp.Or(member.Node, member.Address))
		}
	}
	return silent
}

// certificateEnds records the event of a gateway whose certificate expires soon. Other callers have no object.
func (p *parts) certificateEnds(role server.Role, name, message string) {
	if role == server.RoleGateway {
		p.events.Record(context.Background(), &model.Gateway{Meta: model.Meta{Name: name}}, true, "CertificateEndsSoon", message)
	}
}

// replica returns the name of this process in logs and in messages to gateways.
func (s *settings) replica() string {
	return hostName() + "/" + s.listen
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "controlplane"
	}
	return name
}

// run runs all components until the context ends. If one fails, the process ends.
func (p *parts) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.view.Run(ctx) })
	group.Go(func() error { return p.streams.Run(ctx) })
	group.Go(func() error { return p.leader.Run(ctx) })
	group.Go(func() error { return p.prune(ctx) })
	group.Go(func() error { return p.certificates.Run(ctx) })
	group.Go(func() error { return p.events.run(ctx) })
	group.Go(func() error { return p.findings.Run(ctx) })
	group.Go(func() error { return p.loads.Run(ctx) })
	if p.console != nil {
		group.Go(func() error { return p.console.Run(ctx) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (p *parts) prune(ctx context.Context) error {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if err := p.store.PruneEvents(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("old events could not be deleted", "problem", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
