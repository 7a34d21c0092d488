package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/host"
	"sluice.dev/sluice/tests/world"
)

const (
	gateways     = 3
	readyTime    = 3 * time.Minute
	faultTime    = 60 * time.Second // until I/O must go on after a fault
	silenceLimit = 5 * time.Second  // the initiator's own detection of a silent path
	blockSize    = 512
	clients      = 4 // half of them read, half write
)

// bench is a cluster and a host on it, whose LUN 0 is watched.
type bench struct {
	settings
	*cluster.Cluster
	luns   int
	host   *host.Multipath
	report func(record) error
}

// measure does all faults with so many LUNs. What was measured is returned even with an error.
func measure(ctx context.Context, s settings, luns int, report func(record) error) ([]record, error) {
	directory, err := os.MkdirTemp("", "sluice-failover-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }() // scratch
	programs, err := filepath.Abs(s.programs)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	made, err := cluster.Start(starting, cluster.Options{Programs: programs, Directory: directory, Gateways: gateways,
		Volumes: luns, Replicas: 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }() // its namespaces end with this process in any case
	b := &bench{settings: s, Cluster: made, luns: luns, report: report}
	if err := made.WaitReady(starting); err != nil {
		return nil, err
	}
	b.host = host.Open(host.Config{Portals: made.AllPortals(), Target: cluster.Target, Initiator: cluster.Initiator + "1",
		LUNs: []uint16{0}, ResetWait: s.resetWait, SilenceLimit: silenceLimit, ReconnectDelay: 50 * time.Millisecond})
	defer b.host.Close()
	var all []record
	for _, step := range []struct {
		kind  string
		count int
		fault func(ctx context.Context, owner int) (func() error, error)
	}{{kill, s.kills, b.kill}, {move, s.moves, b.move}, {nodeLoss, s.losses, b.cut}} {
		for i := range step.count {
			r, err := b.one(ctx, step.kind, step.fault)
			if err != nil {
				return all, fmt.Errorf("%s %d: %w\n%s", step.kind, i+1, err, made.Logs(15))
			}
			all = append(all, r)
			fmt.Printf("%-12s %4d of %d, %d LUNs: stall %.3f s, longest operation %.3f s, errors %d\n", step.kind, i+1,
				step.count, luns, r.Gap, r.Longest, r.Errors)
			if err := report(r); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// one does one fault to the owner of LUN 0, and waits until all is well again.
func (b *bench) one(ctx context.Context, kind string, fault func(context.Context, int) (func() error, error)) (record, error) {
	ready, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if err := b.WaitReady(ready); err != nil {
		return record{}, err
	}
	if err := b.host.WaitPaths(ready, len(b.host.Paths)); err != nil {
		return record{}, err
	}
	owner, err := b.Owner(ready, 0)
	if err != nil {
		return record{}, err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	p := &probe{host: b.host}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(watched)
	}()
	if err := pause(ctx, b.beforeEach); err != nil {
		return record{}, err
	}
	began := time.Now()
	mend, err := fault(ctx, owner)
	if err == nil {
		err = p.untilCalm(ctx, began, b.beforeEach)
	}
	stop()
	<-done
	if mend != nil {
		err = errors.Join(err, mend())
	}
	r := p.result(began)
	r.Kind, r.LUNs = kind, b.luns
	if kind == nodeLoss {
		r.Beyond = max(0, r.Gap-silenceLimit.Seconds())
	}
	return r, err
}

func (b *bench) kill(_ context.Context, owner int) (func() error, error) {
	return b.Gateways[owner].Start, b.Gateways[owner].Kill()
}

func (b *bench) move(ctx context.Context, owner int) (func() error, error) {
	before, err := b.Owned(ctx, 0)
	if err != nil {
		return nil, err
	}
	if err := b.Move(ctx, 0, (owner+1)%gateways); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	return nil, world.Until(ctx, func() error { // by the epoch: the cluster may have moved it on meanwhile
		now, err := b.Owned(ctx, 0)
		if err == nil && now == before {
			err = errors.New("the volume has not moved")
		}
		return err
	})
}

// cut pulls every cable of the owner's node. What stands in its way to come back is started again: whoever took over may
// have killed it (DESIGN R2, local).
func (b *bench) cut(_ context.Context, owner int) (func() error, error) {
	var undo []world.Undo
	var failed error
	for _, fabric := range b.Network.Fabrics {
		heal, err := b.Network.CutLink(cluster.GatewayName(owner), fabric)
		undo = append(undo, heal)
		failed = errors.Join(failed, err)
	}
	return func() error {
		var all []error
		for _, heal := range undo {
			all = append(all, heal())
		}
		if !b.Gateways[owner].Running() {
			all = append(all, b.Gateways[owner].Start())
		}
		return errors.Join(all...)
	}, failed
}

// probe keeps a few operations under way and notes when each was acknowledged.
type probe struct {
	host *host.Multipath
	mu   sync.Mutex
	// acknowledged in order, each with how long it took.
	acknowledged []acknowledged
	errors       int
	retries      int
}

type acknowledged struct {
	at   time.Time
	took time.Duration
}

func (p *probe) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			data := make([]byte, blockSize)
			for count := 0; ctx.Err() == nil; count++ {
				command := host.Read(0, uint64(8*i), 1, blockSize)
				if i%2 == 0 {
					data[0], data[1] = byte(count), byte(count>>8)
					command = host.Write(0, uint64(8*i), data, blockSize)
				}
				p.one(ctx, command)
			}
		})
	}
	all.Wait()
}

func (p *probe) one(ctx context.Context, command host.Command) {
	limited, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	began := time.Now()
	result := p.host.Run(limited, command)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retries += result.Retries
	switch {
	case result.Outcome == host.OK:
		p.acknowledged = append(p.acknowledged, acknowledged{now, now.Sub(began)})
	case ctx.Err() == nil:
		p.errors++
	}
}

// untilCalm waits until, after the fault, operations were acknowledged for as long as `calm` and none of them, nor any
// gap between them, took half of that.
func (p *probe) untilCalm(ctx context.Context, began time.Time, calm time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	return world.Until(ctx, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		last := now.Add(-calm)
		if last.Before(began) {
			return errors.New("it has only begun")
		}
		first, _ := slices.BinarySearchFunc(p.acknowledged, last, func(a acknowledged, t time.Time) int { return a.at.Compare(t) })
		for _, a := range p.acknowledged[first:] {
			if a.took > calm/2 || a.at.Sub(last) > calm/2 {
				return errors.New("operations still take long")
			}
			last = a.at
		}
		if now.Sub(last) > calm/2 {
			return errors.New("operations are not acknowledged")
		}
		return nil
	})
}

// stall gives the longest gap between acknowledgements of which the later one came after a moment, and the longest
// operation among those. The lock is held.
func (p *probe) stall(since time.Time) (gap, longest time.Duration) {
	for i, a := range p.acknowledged {
		if a.at.Before(since) {
			continue
		}
		longest = max(longest, a.took)
		if i > 0 {
			gap = max(gap, a.at.Sub(p.acknowledged[i-1].at))
		}
	}
	return gap, longest
}

func (p *probe) result(began time.Time) record {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap, longest := p.stall(began)
	return record{Gap: gap.Seconds(), Longest: longest.Seconds(), Errors: p.errors, Retries: p.retries}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
