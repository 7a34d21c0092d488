package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// groupsAtOnce is the number of groups in flight from which on new transactions wait and are gathered.
	groupsAtOnce = 2
	// groupPatience bounds the time for which a group without an answer from etcd delays others. A member of etcd that hangs must
	// not delay transactions that another member would answer.
	groupPatience = 50 * time.Millisecond
	// groupSize bounds the transactions of a group, and groupOps the comparisons and writes of one transaction in it. Both are
	// below etcd's default limit (128, for each level of nesting).
	groupSize = 32
	groupOps  = 32
	// groupBytes bounds the bytes that a group writes, below etcd's default limit for a request (1.5 MiB).
	groupBytes = 512 << 10
)

// groups sends transactions that wait at the same moment to etcd as one request, in which each is nested with its own
// comparisons. A failover of many volumes needs several transactions for each volume, and most of etcd's time is spent on
// requests, not on their writes. No transaction waits to be gathered: while fewer than groupsAtOnce groups are in flight, it is
// sent alone. Nested transactions succeed and fail separately. All comparisons of a group precede its first write, so a
// transaction that compares or writes a key that another one writes goes into a later group.
type groups struct {
	client   *clientv3.Client
	patience time.Duration
	mutex    sync.Mutex
	waiting  []*member
	inFlight int
}

// member is a transaction, and the channel on which its caller waits for the outcome.
type member struct {
	ctx      context.Context
	compares []clientv3.Cmp
	writes   []clientv3.Op
	done     chan outcome
}

type outcome struct {
	revision  int64
	succeeded bool
	err       error
}

// commit is Txn(ctx).If(compares...).Then(writes...).Commit(). A caller whose context ends does not know the outcome, as with any
// request to etcd.
func (g *groups) commit(ctx context.Context, compares []clientv3.Cmp, writes []clientv3.Op) (int64, bool, error) {
	m := &member{ctx: ctx, compares: compares, writes: writes, done: make(chan outcome, 1)}
	g.mutex.Lock()
	g.waiting = append(g.waiting, m)
	g.depart()
	g.mutex.Unlock()
	select {
	case o := <-m.done:
		return o.revision, o.succeeded, o.err
	case <-ctx.Done():
		g.mutex.Lock()
		g.waiting = slices.DeleteFunc(g.waiting, func(other *member) bool { return other == m })
		g.mutex.Unlock()
		return 0, false, ctx.Err()
	}
}

// depart sends groups while more may be in flight. The caller holds the mutex.
func (g *groups) depart() {
	for len(g.waiting) > 0 && g.inFlight < groupsAtOnce {
		group := g.nextGroup()
		g.inFlight++
		go g.commitGroup(group)
	}
}

// nextGroup removes from the waiting transactions, oldest first, those that can be sent as one group. The caller holds the mutex.
func (g *groups) nextGroup() (group []*member) {
	read, written, bytes := map[string]bool{}, map[string]bool{}, 0
	g.waiting = slices.DeleteFunc(g.waiting, func(m *member) bool {
		size := m.bytes()
		if len(group) > 0 && (len(group) == groupSize || bytes+size > groupBytes || m.large() || group[0].large() ||
			m.meets(read, written)) {
			return false
		}
		for i := range m.compares {
			read[string(m.compares[i].KeyBytes())] = true
		}
		for i := range m.writes {
			written[string(m.writes[i].KeyBytes())] = true
		}
		group, bytes = append(group, m), bytes+size
		return true
	})
	return group
}

func (m *member) bytes() (sum int) {
	for i := range m.writes {
		sum += len(m.writes[i].KeyBytes()) + len(m.writes[i].ValueBytes())
	}
	return sum
}

// large reports whether a transaction must be sent alone: it has many parts, or a part that covers a range of keys.
func (m *member) large() bool {
	ranges := slices.ContainsFunc(m.compares, func(c clientv3.Cmp) bool { return len(c.GetCompare().GetRangeEnd()) > 0 }) ||
		slices.ContainsFunc(m.writes, func(o clientv3.Op) bool { return len(o.RangeBytes()) > 0 })
	return ranges || max(len(m.compares), len(m.writes)) > groupOps
}

// meets reports whether a transaction compares a written key, or writes a compared or written key.
func (m *member) meets(read, written map[string]bool) bool {
	return slices.ContainsFunc(m.compares, func(c clientv3.Cmp) bool { return written[string(c.KeyBytes())] }) ||
		slices.ContainsFunc(m.writes, func(o clientv3.Op) bool {
			return read[string(o.KeyBytes())] || written[string(o.KeyBytes())]
		})
}

// commitGroup commits a group and sends each member its outcome.
func (g *groups) commitGroup(group []*member) {
	land := sync.OnceFunc(func() {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.inFlight--
		g.depart()
	})
	defer land()
	defer time.AfterFunc(g.patience, land).Stop()
	ctx, stop := contextOfGroup(group)
	defer stop()
	if len(group) > 1 && g.commitTogether(ctx, group) {
		return
	}
	for _, m := range group {
		done, err := g.client.Txn(ctx).If(m.compares...).Then(m.writes...).Commit()
		if err != nil {
			m.done <- outcome{err: err}
			continue
		}
		m.done <- outcome{revision: done.Header.Revision, succeeded: done.Succeeded}
	}
}

// commitTogether returns false if etcd refuses the group as too large and has done nothing: its limits may be lower than the
// default.
func (g *groups) commitTogether(ctx context.Context, group []*member) bool {
	var nested []clientv3.Op
	for _, m := range group {
		nested = append(nested, clientv3.OpTxn(m.compares, m.writes, nil))
	}
	done, err := g.client.Txn(ctx).Then(nested...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return false
	case err == nil && len(done.Responses) != len(group):
		err = fmt.Errorf("etcd answered %d of %d transactions", len(done.Responses), len(group))
	}
	for i, m := range group {
		if err != nil {
			m.done <- outcome{err: err}
			continue
		}
		m.done <- outcome{revision: done.Header.Revision, succeeded: done.Responses[i].GetResponseTxn().GetSucceeded()}
	}
	return true
}

// contextOfGroup returns a context that ends when the contexts of all members have ended.
func contextOfGroup(group []*member) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(len(group)))
	stops := []func(){cancel}
	for _, m := range group {
		stop := context.AfterFunc(m.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
		stops = append(stops, func() { stop() })
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
	}
}
