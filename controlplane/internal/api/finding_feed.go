package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/findings"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// feedPause is the least time between two computations for watchers. It coalesces changes: a failover changes thousands of objects.
	feedPause = 250 * time.Millisecond
	// feedInterval is the interval of computations without a change, because time alone can begin and end a finding.
	feedInterval = 500 * time.Millisecond
)

// watchedFinding is a finding as watchers receive it.
type watchedFinding struct {
	findings.Finding
	key   string
	shown *pb.Finding
}

// findingSet has the findings of one computation. A finding that did not change has the same `shown` as in the set before.
type findingSet struct{ grouped, eachObject []watchedFinding }

// of returns the findings in the form that a request wants.
func (s *findingSet) of(r findingSelection) []watchedFinding {
	if r.GetEachObject() {
		return s.eachObject
	}
	return s.grouped
}

// findingFeed distributes the findings to all watchers, which share each computation. Nothing is computed without a watcher. It is safe
// for concurrent use.
type findingFeed struct {
	// due has an entry if something has changed.
	due chan struct{}

	mutex    sync.Mutex
	watchers int
	// begun and finished count computations.
	begun, finished uint64
	// latest is nil before the first computation.
	latest *findingSet
	// computed is closed at the end of each computation.
	computed chan struct{}
}

func newFindingFeed() *findingFeed {
	return &findingFeed{due: make(chan struct{}, 1), computed: make(chan struct{})}
}

// changed requests a computation. It does not block.
func (f *findingFeed) changed() {
	select {
	case f.due <- struct{}{}:
	default:
	}
}

// join adds a watcher until leave is called. Computations after `begun` contain what the replica has read before.
func (f *findingFeed) join() (begun uint64, leave func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.watchers++
	f.changed()
	return f.begun, func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.watchers--
	}
}

// begin begins a computation, if there is a watcher.
func (f *findingFeed) begin() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.watchers == 0 {
		return false
	}
	f.begun++
	return true
}

// next waits for another set than `before`, of a computation after `begun`. Errors: that of the context.
func (f *findingFeed) next(ctx context.Context, before *findingSet, begun uint64) (*findingSet, error) {
	for {
		f.mutex.Lock()
		latest, finished, computed := f.latest, f.finished, f.computed
		f.mutex.Unlock()
		if finished > begun && latest != before {
			return latest, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-computed:
		}
	}
}

// publish ends a computation. Watchers receive its findings, if these differ from those before.
func (f *findingFeed) publish(items []findings.Item) {
	f.mutex.Lock()
	before := f.latest
	f.mutex.Unlock()
	if before == nil {
		before = &findingSet{}
	}
	grouped, sameGroups := watchedFindings(groupedFindings(items, false), false, before.grouped)
	single, sameSingle := watchedFindings(groupedFindings(items, true), true, before.eachObject)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.latest == nil || !sameGroups || !sameSingle {
		f.latest = &findingSet{grouped: grouped, eachObject: single}
	}
	f.finished = f.begun
	close(f.computed)
	f.computed = make(chan struct{})
}

// watchedFindings returns findings as watchers receive them, and whether all of them are those of before.
func watchedFindings(all []findings.Finding, eachObject bool, before []watchedFinding) ([]watchedFinding, bool) {
	known := make(map[string]*pb.Finding, len(before))
	for _, found := range before {
		known[found.key] = found.shown
	}
	same := len(all) == len(before)
	watched := make([]watchedFinding, len(all))
	for i, found := range all {
		watched[i] = watchedFinding{Finding: found, key: findingKey(found, eachObject), shown: showFinding(found)}
		if last := known[watched[i].key]; proto.Equal(last, watched[i].shown) {
			watched[i].shown = last
		} else {
			same = false
		}
	}
	return watched, same
}

// findingKey has what makes findings.Group put items into one finding.
func findingKey(found findings.Finding, eachObject bool) string {
	parts := []string{found.Rule.ID, string(found.Ref.Kind), found.Cause}
	if eachObject {
		parts = append(parts, found.Ref.Name)
	}
	return strings.Join(parts, "/")
}
