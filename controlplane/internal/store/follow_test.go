package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func fabricKey(f *fixture, name string) string {
	return "/sluice/" + f.name + "/objects/" + string(model.KindFabric) + "/" + name
}

// stored puts a value under a key the given number of times, each time as a separate version.
func stored(t *testing.T, key, value string, times int) {
	t.Helper()
	const writers = 50 // etcd syncs its disk for many at once
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range times / writers {
				if _, err := shared.Client.Put(t.Context(), key, value); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// crowd stores a thousand fabrics in one transaction, the given number of times.
func crowd(f *fixture, times int) {
	for range times {
		var all []clientv3.Op
		for i := range 1000 {
			name := fmt.Sprintf("crowd-%03d", i)
			all = append(all, clientv3.OpPut(fabricKey(f, name), fmt.Sprintf(`{"object":{"meta":{"name":%q}}}`, name)))
		}
		if _, err := shared.Client.Txn(f.t.Context()).Then(all...).Commit(); err != nil {
			f.t.Error(err)
		}
	}
}

// etcd sends a watch that is more than a thousand versions behind its batches with the present version in their headers.
func TestABookmarkFollowsEveryChangeThatItCovers(t *testing.T) {
	f := open(t)
	must(f, f.Fabrics, fabric("a"))
	_, version, err := f.Fabrics.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored(t, fabricKey(f, "a"), `{"object":{"meta":{"name":"a"}}}`, 2500)
	must(f, f.Fabrics, fabric("last"))
	var mark int64
	puts := 0
	err = f.Fabrics.Watch(t.Context(), version, func(c store.Change[*model.Fabric]) error {
		switch c.Type {
		case store.Put:
			if puts++; c.Version <= mark {
				return fmt.Errorf("put %d, of version %d, came after bookmark %d", puts, c.Version, mark)
			}
			if c.Object.Meta.Name == "last" {
				return errEnough
			}
		case store.Bookmark:
			mark = c.Version
		}
		return nil
	})
	if !errors.Is(err, errEnough) || puts != 2501 {
		t.Fatalf("%d puts, then %v", puts, err)
	}
}

func TestABookmarkOfRecordsFollowsEveryChangeThatItCovers(t *testing.T) {
	f := open(t)
	start, err := f.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored(t, "/sluice/"+f.name+"/jobs/u.create", `{"id":"u.create"}`, 2500)
	last, err := f.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mark int64
	err = f.WatchJobs(t.Context(), start, func(c store.RecordChange[*model.Job]) error {
		if c.Type == store.Bookmark {
			mark = c.Version
			return nil
		}
		if c.Version <= mark {
			return fmt.Errorf("version %d came after bookmark %d", c.Version, mark)
		}
		if c.Version == last {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
}

// stalled watches fabrics after a version, and receives nothing after the first change before goOn is closed. It returns what it
// received, up to the fabric `last`.
func stalled(f *fixture, after int64, begun chan<- bool, goOn <-chan bool) (seen []string, err error) {
	err = f.Fabrics.Watch(f.t.Context(), after, func(c store.Change[*model.Fabric]) error {
		switch c.Type {
		case store.Reset:
			seen = append(seen, "reset")
		case store.Put:
			if seen = append(seen, fmt.Sprintf("%09d %s", c.Version, c.Object.Meta.Name)); len(seen) == 1 {
				close(begun)
				<-goOn
			}
			if c.Object.Meta.Name == "last" {
				return errEnough
			}
		}
		return nil
	})
	return seen, err
}

func TestASlowWatcherReceivesEveryChangeOnce(t *testing.T) {
	f := open(t)
	_, version, err := f.Fabrics.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan bool), make(chan bool)
	go func() {
		<-begun
		crowd(f, 6) // more than a backlog's limit
		must(f, f.Fabrics, fabric("last"))
		close(goOn)
	}()
	must(f, f.Fabrics, fabric("a"))
	seen, err := stalled(f, version, begun, goOn)
	if !errors.Is(err, errEnough) || len(seen) != 6002 || !slices.IsSorted(seen) || len(slices.Compact(seen)) != 6002 {
		t.Fatalf("heard %d changes, in order: %v; then %v", len(seen), slices.IsSorted(seen), err)
	}
}

// watchers returns the number of etcd's watches, from its metrics.
func watchers(t *testing.T) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() == "etcd_debugging_mvcc_watcher_total" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Error("etcd does not count its watches")
	return 0
}

// etcd alone has the events beyond the backlog: if it has compacted them, the watch restarts.
func TestASlowWatcherHasALimitedBacklog(t *testing.T) {
	f := open(t)
	_, version, err := f.Fabrics.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn, before := make(chan bool), make(chan bool), watchers(t)
	go func() {
		defer close(goOn)
		<-begun
		crowd(f, 12)
		must(f, f.Fabrics, fabric("last"))
		for begun := time.Now(); watchers(t) > before; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Error("the watch of etcd goes on, and its client holds all that comes")
				return
			}
		}
		now, err := f.Revision(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := shared.Client.Compact(t.Context(), now, clientv3.WithCompactPhysical()); err != nil {
			t.Error(err)
		}
	}()
	must(f, f.Fabrics, fabric("a"))
	seen, err := stalled(f, version, begun, goOn)
	// At most a backlog, and then the present objects.
	if !errors.Is(err, errEnough) || !slices.Contains(seen, "reset") || len(seen) > 4096+2+1002 {
		t.Fatalf("heard %d changes, a reset among them: %v; then %v", len(seen), slices.Contains(seen, "reset"), err)
	}
}
