package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	blockSize = 512
	clients   = 16                   // on all watched LUNs together, independent of their number; half of them read
	think     = 2 * time.Millisecond // between a client's operations: the measurement must leave the processors to the measured processes
)

// probe keeps a few operations on one LUN in flight, and records when each was acknowledged.
type probe struct {
	host *initiator.Multipath
	lun  uint16
	mu   sync.Mutex
	// acknowledged operations in order, each with its duration.
	acknowledged []acknowledged
	errors       int
	retries      int
}

type acknowledged struct {
	at   time.Time
	took time.Duration
}

// run runs this number of clients until ctx ends.
func (p *probe) run(ctx context.Context, clients int) {
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			data := make([]byte, blockSize)
			for count := 0; ctx.Err() == nil; count++ {
				command := initiator.Read(p.lun, uint64(8*i), 1, blockSize)
				if i%2 == 0 {
					data[0], data[1] = byte(count), byte(count>>8)
					command = initiator.Write(p.lun, uint64(8*i), data, blockSize)
				}
				p.sendCommand(ctx, command)
				_ = netns.Wait(ctx, think) // the loop checks ctx
			}
		})
	}
	all.Wait()
}

func (p *probe) sendCommand(ctx context.Context, command initiator.Command) {
	limited, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	began := time.Now()
	result := p.host.Run(limited, command)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retries += result.Retries
	switch {
	case result.Outcome == initiator.OK:
		p.acknowledged = append(p.acknowledged, acknowledged{now, now.Sub(began)})
	case ctx.Err() == nil:
		if p.errors == 0 { // the first one explains the others
			fmt.Fprintf(os.Stderr, "LUN %d: an operation begun at %v ended badly after %v: %v\n", p.lun,
				began.Format(time.StampMilli), now.Sub(began), result.Err)
		}
		p.errors++
	}
}

// untilCalm waits until, after the fault, operations were acknowledged for the duration of `calm`, and no operation, and no gap
// between them, took half of that.
func (p *probe) untilCalm(ctx context.Context, began time.Time, calm time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	return netns.Until(ctx, func() error {
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

// stall returns the longest gap between acknowledgements whose later one came after a time, the end of that gap, and the longest
// operation among these.
func (p *probe) stall(since time.Time) (gap time.Duration, ended time.Time, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, a := range p.acknowledged {
		if a.at.Before(since) {
			continue
		}
		longest = max(longest, a.took)
		if i > 0 && a.at.Sub(p.acknowledged[i-1].at) > gap {
			gap, ended = a.at.Sub(p.acknowledged[i-1].at), a.at
		}
	}
	return gap, ended, longest
}

// watch runs probes on several LUNs until the returned function is called.
func watch(ctx context.Context, probes []*probe) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range probes {
		all.Go(func() { p.run(ctx, max(2, clients/len(probes))) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}
