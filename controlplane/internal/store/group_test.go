package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// gate delays transactions on their way to etcd until it opens.
type gate struct {
	arrived atomic.Int64
	open    chan struct{}
}

func (g *gate) pass() {
	g.arrived.Add(1)
	<-g.open
}

// grouped sends groups to a real etcd through a gate.
type grouped struct {
	*groups
	gate *gate
	t    *testing.T
}

func gated(t *testing.T, patience time.Duration, change func(*embed.Config)) *grouped {
	t.Helper()
	client := etcdtest.Start(t, change)
	way := &gate{open: make(chan struct{})}
	client.KV = &etcdtest.BeforeCommit{KV: client.KV, Before: way.pass}
	return &grouped{&groups{client: client, patience: patience}, way, t}
}

// once returns when a condition holds.
func once(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		if t.Context().Err() != nil {
			t.Fatal("the test is over")
		}
		runtime.Gosched()
	}
}

// begin commits a transaction. The returned function waits for the outcome.
func (g *grouped) begin(ctx context.Context, compares []clientv3.Cmp, writes ...clientv3.Op) func() outcome {
	landed := make(chan outcome, 1)
	go func() {
		revision, succeeded, err := g.commit(ctx, compares, writes)
		landed <- outcome{revision, succeeded, err}
	}()
	return func() outcome { return <-landed }
}

// occupied starts as many transactions as are needed to make the next ones wait.
func (g *grouped) occupied() (first []func() outcome) {
	g.t.Helper()
	for i := range groupsAtOnce {
		first = append(first, g.begin(g.t.Context(), nil, clientv3.OpPut(fmt.Sprintf("first-%d", i), "")))
		once(g.t, func() bool { return g.gate.arrived.Load() == int64(i+1) })
	}
	return first
}

func (g *grouped) waits(transactions int) {
	g.t.Helper()
	once(g.t, func() bool {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		return len(g.waiting) == transactions
	})
}

func (g *grouped) value(key string) string {
	g.t.Helper()
	got, err := g.client.Get(g.t.Context(), key)
	if err != nil {
		g.t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

func TestTransactionsThatComeWhileEtcdIsBusyGoAsOneAndSucceedOrFailEachByItself(t *testing.T) {
	g := gated(t, time.Hour, func(*embed.Config) {})
	all := g.occupied()
	const more = 20
	for i := range more {
		key := fmt.Sprintf("key-%d", i)
		compares := []clientv3.Cmp{missing(key)}
		if i == 7 {
			compares = []clientv3.Cmp{present(key)}
		}
		all = append(all, g.begin(t.Context(), compares, clientv3.OpPut(key, "new")))
		g.waits(i + 1)
	}
	close(g.gate.open)
	revisions := map[int64]bool{}
	for i, landed := range all {
		o, failing := landed(), i == groupsAtOnce+7
		if o.err != nil || o.succeeded == failing {
			t.Errorf("transaction %d: %+v", i, o)
		}
		if i >= groupsAtOnce {
			revisions[o.revision] = true
		}
	}
	if requests := g.gate.arrived.Load(); requests != groupsAtOnce+1 || len(revisions) != 1 {
		t.Errorf("%d requests, revisions %v", requests, revisions)
	}
	if g.value("key-6") != "new" || g.value("key-7") != "" {
		t.Error("a failed write is stored, or a successful one is not")
	}
}

// R1: in one request both would be compared before either is written, and both would succeed.
func TestOfTwoTransactionsThatCompareAndWriteTheSameKeyOneWins(t *testing.T) {
	g := gated(t, time.Hour, func(*embed.Config) {})
	all := g.occupied()
	for i := range 2 {
		all = append(all, g.begin(t.Context(), []clientv3.Cmp{missing("owner")}, clientv3.OpPut("owner", "me"),
			clientv3.OpPut(fmt.Sprintf("mine-%d", i), "")))
	}
	g.waits(2)
	close(g.gate.open)
	won := 0
	for _, landed := range all[groupsAtOnce:] {
		o := landed()
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.succeeded {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}

func TestTransactionsWithCommonKeysAreInDifferentGroups(t *testing.T) {
	transaction := func(compared, written string) *member {
		return &member{compares: []clientv3.Cmp{missing(compared)}, writes: []clientv3.Op{clientv3.OpPut(written, "")}}
	}
	for name, second := range map[string]*member{
		"it writes what is written": transaction("other", "b"), "it compares what is written": transaction("b", "other"),
		"it writes what is compared": transaction("other", "a"),
	} {
		first, third := transaction("a", "b"), transaction("a", "c") // two transactions may compare the same key
		g := &groups{waiting: []*member{first, second, third}}
		if group := g.nextGroup(); !slices.Equal(group, []*member{first, third}) {
			t.Errorf("%s: %d go together", name, len(group))
		}
		if group := g.nextGroup(); !slices.Equal(group, []*member{second}) || len(g.waiting) > 0 {
			t.Errorf("%s: it does not go next", name)
		}
	}
}

func TestARangeGoesAlone(t *testing.T) {
	g := gated(t, time.Hour, func(*embed.Config) {})
	g.occupied()
	puts := g.begin(t.Context(), nil, clientv3.OpPut("dir/a", "1"))
	g.waits(1)
	deletes := g.begin(t.Context(), []clientv3.Cmp{absent("dir/b")}, clientv3.OpDelete("dir/", clientv3.WithPrefix()))
	g.waits(2)
	close(g.gate.open)
	for _, landed := range []func() outcome{puts, deletes} {
		if o := landed(); o.err != nil || !o.succeeded {
			t.Errorf("%+v", o)
		}
	}
	if requests := g.gate.arrived.Load(); requests != groupsAtOnce+2 {
		t.Errorf("%d requests", requests)
	}
}

func TestAnUnansweredGroupDelaysLaterOnesForALimitedTime(t *testing.T) {
	g := gated(t, time.Millisecond, func(*embed.Config) {})
	hanging := g.occupied()
	later := g.begin(t.Context(), nil, clientv3.OpPut("later", "1"))
	once(t, func() bool { return g.gate.arrived.Load() > groupsAtOnce })
	close(g.gate.open)
	for _, landed := range append(hanging, later) {
		if o := landed(); o.err != nil || !o.succeeded {
			t.Errorf("%+v", o)
		}
	}
	once(t, func() bool { g.mutex.Lock(); defer g.mutex.Unlock(); return g.inFlight == 0 })
}

func TestATransactionThatEndsWhileItWaitsChangesNothing(t *testing.T) {
	g := gated(t, time.Hour, func(*embed.Config) {})
	first := g.occupied()
	ctx, end := context.WithCancel(t.Context())
	ended := g.begin(ctx, nil, clientv3.OpPut("ended", "1"))
	g.waits(1)
	end()
	if o := ended(); !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
	close(g.gate.open)
	for _, landed := range first {
		landed()
	}
	if g.value("ended") != "" {
		t.Error("it was written")
	}
}

func TestAGroupThatIsTooLargeForThisEtcdGoesOneByOne(t *testing.T) {
	g := gated(t, time.Hour, func(config *embed.Config) { config.MaxTxnOps = 8 })
	all := g.occupied()
	for i := range 12 {
		all = append(all, g.begin(t.Context(), nil, clientv3.OpPut(fmt.Sprintf("key-%d", i), "1")))
	}
	g.waits(12)
	close(g.gate.open)
	for _, landed := range all {
		if o := landed(); o.err != nil || !o.succeeded {
			t.Errorf("%+v", o)
		}
	}
}

// Two changes of one transaction have the same version. A receiver that got only the first of them, and resumes after it,
// receives the other.
func TestAWatchThatBreaksBetweenTwoChangesOfOneTransactionGoesOnWithTheSecond(t *testing.T) {
	client := etcdtest.Start(t, func(*embed.Config) {})
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), client, Options{Cluster: "one", Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	var both []clientv3.Op
	var from int64
	for _, name := range []string{"blue", "red"} {
		object := &model.Fabric{Meta: model.Meta{Name: name}}
		if err := s.Fabrics.Create(t.Context(), object, false); err != nil {
			t.Fatal(err)
		}
		value, err := s.Fabrics.encode(object)
		if err != nil {
			t.Fatal(err)
		}
		both, from = append(both, clientv3.OpPut(s.Fabrics.key(name), string(value))), object.Meta.Version
	}
	if _, err := client.Txn(t.Context()).Then(both...).Commit(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	first := func(after int64) (change Change[*model.Fabric]) {
		if err := s.Fabrics.Watch(t.Context(), after, func(c Change[*model.Fabric]) error {
			change = c
			return broken
		}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		return change
	}
	resumed, seen := first(from).Resume, map[string]bool{}
	if err := s.Fabrics.Watch(t.Context(), resumed, func(c Change[*model.Fabric]) error {
		if c.Type == Bookmark {
			return broken
		}
		seen[c.Object.Meta.Name] = true
		return nil
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if !seen["red"] {
		t.Errorf("after %d only %v is sent", resumed, seen)
	}
}

// The objects that were not reported yet have older or newer versions, so the watch must report all objects again.
func TestAWatchThatBreaksDuringItsInitialListStartsAgain(t *testing.T) {
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), etcdtest.Start(t, func(*embed.Config) {}), Options{Cluster: "one", Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"red", "blue"} { // blue is reported first, and is the newer one
		if err := s.Fabrics.Create(t.Context(), &model.Fabric{Meta: model.Meta{Name: name}}, false); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	resumed, seen := int64(-1), map[string]bool{}
	until := func(end ChangeType) func(Change[*model.Fabric]) error {
		return func(c Change[*model.Fabric]) error {
			if c.Type == Put {
				seen[c.Object.Meta.Name] = true
			}
			resumed = c.Resume
			if c.Type == end {
				return broken
			}
			return nil
		}
	}
	if err := s.Fabrics.Watch(t.Context(), 0, until(Put)); !errors.Is(err, broken) || len(seen) != 1 {
		t.Fatalf("%v after %v", err, seen)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := s.Fabrics.Watch(ctx, resumed, until(Bookmark)); !errors.Is(err, broken) || !seen["red"] {
		t.Errorf("%v after %v", err, seen)
	}
	if resumed == 0 {
		t.Error("the bookmark named no version from which the next watch can continue")
	}
}
