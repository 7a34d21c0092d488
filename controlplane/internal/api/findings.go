package api

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// findingList names the list of findings in its page tokens.
	findingList = "findings"
	// findingsInterval is the interval at which facts are read, and findings counted for the metric.
	findingsInterval = 2 * time.Second
	// currentLimit bounds the time that a request waits for the view.
	currentLimit = time.Second
	// leaderlessLimit is the time without a leader that is a finding. An election takes store.LeaderTTL, and some network time.
	leaderlessLimit = 10 * time.Second
	// maxMembers bounds the objects and consequences of one finding in a response.
	maxMembers = 100
)

// Facts reads the facts about the control plane: etcd, the leader, certificates. It returns before the context ends.
type Facts func(context.Context) findings.System

// Findings serves FindingService, and counts findings for the metric. Its methods are safe for concurrent use.
type Findings struct {
	pb.UnimplementedFindingServiceServer
	store *store.Store
	view  *view.Cache
	read  Facts
	gauge *prometheus.GaugeVec
	log   *slog.Logger
	// journal records events of findings; nil: none are recorded.
	journal *journal
	// feed serves WatchFindings.
	feed *findingFeed

	hostFaults *followed[uint32, *model.HostFaultReport]
	sessions   *followed[sessionKey, *model.Session]
	starts     *followed[fault, model.FindingStart]

	mutex sync.Mutex
	facts findings.System
	// factsKnown: the facts were read at least once.
	factsKnown bool
	// leaderless is the time since when no replica leads; zero: one does.
	leaderless time.Time
	// counted has the series of the metric, by finding and severity.
	counted map[[2]string]float64
	// since has the time at which each fault was first seen that records none itself.
	since map[fault]time.Time
}

// fault identifies an item over time.
type fault struct {
	rule string
	ref  findings.Ref
}

// NewFindings makes the service. Its Run must run: it reads the facts.
func NewFindings(s *store.Store, v *view.Cache, read Facts, registerer prometheus.Registerer) *Findings {
	f := &Findings{store: s, view: v, read: read, log: slog.New(slog.DiscardHandler), since: map[fault]time.Time{}, feed: newFindingFeed(),
		hostFaults: newFollowed(func(r *model.HostFaultReport) uint32 { return r.Gateway.Number }),
		sessions:   newFollowed(func(s *model.Session) sessionKey { return sessionKey{s.GatewayNumber, s.TSIH} }),
		starts:     newFollowed(faultOf), counted: map[[2]string]float64{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_controlplane_findings",
			Help: "Objects with a fault, by finding and severity (critical, warning, advice), as this replica finds them; docs/RUNBOOK.md explains each.",
		}, []string{"finding", "severity"})}
	for _, rule := range findings.Rules {
		f.counted[[2]string{rule.ID, rule.Severity.String()}] = 0
	}
	registerer.MustRegister(f.gauge)
	f.hostFaults.changed, f.sessions.changed, f.starts.changed = f.feed.changed, f.feed.changed, f.feed.changed
	return f
}

// RecordEvents makes the replica record an event when a finding begins and when it ends, while it leads. It must be called before Run.
func (f *Findings) RecordEvents(record RecordEvent, log *slog.Logger) {
	f.log, f.journal = log, newJournal(f.store, record, log)
}

// Run reads the facts, follows the records that findings need, and counts the findings until the context ends.
func (f *Findings) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.hostFaults.run(ctx, "host faults", f.log, f.store.WatchHostFaults) })
	group.Go(func() error { return f.starts.run(ctx, "findings", f.log, f.store.WatchFindingStarts) })
	group.Go(func() error {
		return f.sessions.run(ctx, "sessions", f.log, func(ctx context.Context, after int64, tell func(store.RecordChange[*model.Session]) error) error {
			return f.store.WatchSessions(ctx, after, func(c store.RecordChange[*model.Session]) error {
				if c.Record != nil {
					c.Record = path(c.Record)
				}
				return tell(c)
			})
		})
	})
	group.Go(func() error { return f.repeat(ctx) })
	group.Go(func() error { return f.feedWatchers(ctx) })
	return group.Wait()
}

// repeat computes the findings at intervals until the context ends.
func (f *Findings) repeat(ctx context.Context) error {
	ticker := time.NewTicker(findingsInterval)
	defer ticker.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.view.Ready():
	}
	for {
		f.refresh(ctx, time.Now())
		now := time.Now()
		items := f.items(now)
		f.count(items)
		f.recordEvents(ctx, items, now)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// recordEvents records findings that have begun or ended, if this replica leads and knows everything.
func (f *Findings) recordEvents(ctx context.Context, items []findings.Item, now time.Time) {
	f.mutex.Lock()
	leads := f.facts.Leads && f.facts.StoreProblem == ""
	f.mutex.Unlock()
	if f.journal == nil || !leads || !f.hostFaults.complete() || !f.sessions.complete() || !f.starts.complete() {
		return
	}
	f.journal.observe(ctx, items, f.starts.all(), now)
}

// refresh reads the facts. The time without a leader is measured by this replica's own clock.
func (f *Findings) refresh(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, findingsInterval)
	defer cancel()
	facts := f.read(ctx)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !facts.NoLeader {
		f.leaderless = time.Time{}
	} else if f.leaderless.IsZero() {
		f.leaderless = now
	}
	facts.NoLeader = facts.NoLeader && now.Sub(f.leaderless) > leaderlessLimit
	f.facts, f.factsKnown = facts, true
	f.feed.changed()
}

// current waits until the view has everything that is stored now, and reads the facts, because the caller may have changed something
// just before. If etcd does not answer, the findings are those of the view, and that etcd does not answer is one of them.
func (f *Findings) current(ctx context.Context) {
	catchUp(ctx, f.store, f.view)
	f.refresh(context.WithoutCancel(ctx), time.Now())
}

// items returns the present faults, each with its start.
func (f *Findings) items(now time.Time) []findings.Item {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	facts := f.facts
	facts.Time = now
	facts.HostFaults, facts.Sessions = f.hostFaults.all(), f.sessions.all()
	var items []findings.Item
	f.view.Read(func(o *objects.Objects) { items = findings.Items(o, facts) })
	seen := map[fault]time.Time{}
	for i, item := range items {
		key := fault{item.Rule.ID, item.Ref}
		if _, twice := seen[key]; !twice {
			seen[key] = f.firstSeen(key, now)
		}
		if item.Since.IsZero() {
			items[i].Since = seen[key]
		}
	}
	f.since = seen
	return slices.DeleteFunc(items, func(item findings.Item) bool {
		return now.Sub(seen[fault{item.Rule.ID, item.Ref}]) < item.Settles
	})
}

// firstSeen returns the stored start of a finding or, without one, the time at which this replica found it first. The caller holds the
// mutex.
func (f *Findings) firstSeen(key fault, now time.Time) time.Time {
	if start, stored := f.starts.get(key); stored {
		return start.Since
	}
	if first, known := f.since[key]; known {
		return first
	}
	return now
}

// count sets the metric. Every rule has a value, so that alerts see the difference between no fault and no metric.
func (f *Findings) count(items []findings.Item) {
	for series := range f.counted { // a series that was removed and added again would be missing in a scrape between
		f.counted[series] = 0
	}
	for _, item := range items {
		f.counted[[2]string{item.Rule.ID, item.Severity.String()}]++
	}
	for series, count := range f.counted {
		f.gauge.WithLabelValues(series[0], series[1]).Set(count)
	}
}

// ListFindings implements FindingService. The position of a page is the count of findings before it: a finding that begins or ends
// meanwhile can be sent twice or be left out, as it could at any other time.
func (f *Findings) ListFindings(ctx context.Context, r *pb.ListFindingsRequest) (*pb.ListFindingsResponse, error) {
	select {
	case <-f.view.Ready():
	default:
		return nil, status.Error(codes.Unavailable, "this replica has not read all objects yet: try again")
	}
	from, err := findingPosition(r.GetPageToken())
	if err != nil {
		return nil, page{field: "pageToken"}.statusOf(err)
	}
	size := int(r.GetPageSize())
	if size == 0 {
		size = store.DefaultPageSize
	}
	f.current(ctx)
	all := f.selected(r)
	response := &pb.ListFindingsResponse{}
	var bytes budget
	for i, found := range all[min(from, len(all)):] {
		shown := showFinding(found)
		if i == min(size, store.MaxPageSize) || !bytes.takes(shown) {
			response.NextPageToken = pageToken(findingList, fmt.Sprint(from+i))
			break
		}
		response.Findings = append(response.Findings, shown)
	}
	return response, ctx.Err()
}

func findingPosition(token string) (int, error) {
	position, err := pagePosition(findingList, token)
	if err != nil || position == "" {
		return 0, err
	}
	at := 0
	if _, err := fmt.Sscanf(position, "%d", &at); err != nil || at < 0 {
		return 0, store.ErrPageToken
	}
	return at, nil
}

// selected returns the findings that a request selects, all pages.
func (f *Findings) selected(r *pb.ListFindingsRequest) []findings.Finding {
	return slices.DeleteFunc(groupedFindings(f.items(time.Now()), r.GetEachObject()), func(found findings.Finding) bool {
		return !selects(r, found)
	})
}

func showFinding(found findings.Finding) *pb.Finding {
	shown := &pb.Finding{Id: found.Rule.ID, Severity: showSeverity(found.Worst), Object: showRef(found.Ref), Cause: found.Cause,
		Remedy: found.Remedy, Link: found.Rule.Link(), StartTime: timestamppb.New(found.Since),
		ObjectCount: int32(len(found.Objects)), ConsequenceCount: int32(len(found.Consequences))}
	for _, ref := range found.Objects[:min(len(found.Objects), maxMembers)] {
		shown.Objects = append(shown.Objects, showRef(ref))
	}
	for _, item := range found.Consequences[:min(len(found.Consequences), maxMembers)] {
		shown.Consequences = append(shown.Consequences, &pb.Consequence{Id: item.Rule.ID, Severity: showSeverity(item.Severity),
			Object: showRef(item.Ref), Cause: item.Cause})
	}
	return shown
}

func showRef(ref findings.Ref) *pb.ObjectReference {
	return &pb.ObjectReference{Kind: string(ref.Kind), Name: ref.Name}
}

var severities = map[findings.Severity]pb.FindingSeverity{
	findings.Advice:   pb.FindingSeverity_FINDING_SEVERITY_ADVICE,
	findings.Warning:  pb.FindingSeverity_FINDING_SEVERITY_WARNING,
	findings.Critical: pb.FindingSeverity_FINDING_SEVERITY_CRITICAL,
}

func showSeverity(s findings.Severity) pb.FindingSeverity { return severities[s] }
