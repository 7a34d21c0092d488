package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const blockSize = 512

const netCPU = "net_cpu_s_per_command"

// measureLUNs sends reads to all LUNs of the first LUN's owner in turn, over one session, one at a time: the number of commands
// that arrive with one receive would be random, and dominate the cost.
func (f *field) measureLUNs(ctx context.Context, s stage) error {
	luns := f.owned(ctx)
	session, err := f.logIn(ctx, f.Portals(f.owner)[0], 0)
	if err != nil {
		return err
	}
	defer session.LogOut()
	if err := ready(ctx, session, luns); err != nil {
		return err
	}
	for round := range f.plan.rounds {
		figures, err := f.readInTurn(ctx, session, luns)
		if err != nil {
			return fmt.Errorf("%+v, all used: %w", s, err)
		}
		fmt.Printf("luns: %d, all used, round %d: %.2f us of the gateway per read, %.2f net, %.0f IOPS\n", len(luns), round+1,
			1e6*figures[cpu], 1e6*figures[netCPU], figures["iops"])
		parameters := harness.With(s.parameters("read"), map[string]any{"depth": 1, "used": "all"})
		if err := f.Record(harness.Measurement{Subject: "direct", Parameters: parameters, Round: round + 1, Figures: figures,
			Notes: "the host of tests/initiator, which costs the gateway more small receives than iscsi-load"}); err != nil {
			return err
		}
	}
	return nil
}

// measureSessions reads over this number of sessions, with one command in flight on each, and over as many connections of the
// bare echo.
func (f *field) measureSessions(ctx context.Context, s stage) error {
	direct := f.load("direct", "read")
	direct.Watch = direct.Watch[:1] // the owner
	bare := direct
	bare.Bare, bare.Portal, bare.Watch = true, f.echo.portal, []int{f.echo.process.Pid()}
	subjects := []string{"direct", "bare"}
	for round := range f.plan.rounds {
		figures := map[string]map[string]float64{}
		for i := range subjects {
			subject := subjects[(i+round)%len(subjects)]
			load := map[string]harness.Load{"direct": direct, "bare": bare}[subject]
			load.Sessions, load.Depth = s.sessions, 1
			results, err := f.Drive(ctx, []harness.Load{load})
			if err != nil {
				return fmt.Errorf("%+v, all used, %s: %w", s, subject, err)
			}
			figures[subject] = harness.Sum(results)
		}
		figures["direct"]["cpu_ratio_to_bare"] = figures["direct"][cpu] / figures["bare"][cpu]
		noise := max(figures["direct"]["noise_share"], figures["bare"]["noise_share"])
		fmt.Printf("sessions: %d, all used, round %d: %.2f us of the gateway per read, %.2f of the bare echo, noise %.0f %%\n", s.sessions, round+1,
			1e6*figures["direct"][cpu], 1e6*figures["bare"][cpu], 100*noise)
		for _, subject := range subjects {
			figures[subject]["noise_share"] = noise
			parameters := harness.With(s.parameters("read"), map[string]any{"depth": 1, "used": "all"})
			if err := f.Record(harness.Measurement{Subject: subject, Parameters: parameters, Round: round + 1, Figures: figures[subject]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// areaOfLUN is the part of each LUN that is read. All together are as large as a single one, so that more LUNs do not mean reading
// from more memory.
func areaOfLUN(luns int) int { return max(size, span/luns/size*size) }

const writeSize = 256 << 10

// ready consumes all unit attentions, and writes the blocks that will be read, because a hole costs more the first time.
func ready(ctx context.Context, session *initiator.Session, luns []uint16) error {
	data := make([]byte, writeSize)
	for _, lun := range luns {
		if _, err := session.Good(ctx, initiator.TestUnitReady(lun)); err != nil {
			return err
		}
		for at := 0; at < areaOfLUN(len(luns)); at += writeSize {
			part := data[:min(writeSize, areaOfLUN(len(luns))-at)]
			if _, err := session.Good(ctx, initiator.Write(lun, uint64(at/blockSize), part, blockSize)); err != nil {
				return err
			}
		}
	}
	return nil
}

// owned returns the LUNs of the cluster's target whose owner also owns the first LUN.
func (f *field) owned(ctx context.Context) []uint16 {
	number, err := f.Number(ctx, f.owner)
	if err != nil {
		return []uint16{0}
	}
	limited, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	_ = f.owners.WaitShare(limited, number, f.Volumes/f.gateways/2) // later ones are not used
	return lunsIn(f.owners.Of(number))
}

// lunsIn returns the LUNs of volumes by their names, those of the cluster's own target; LUN 0 is always among them.
func lunsIn(volumes map[string]cluster.Ownership) []uint16 {
	luns := []uint16{0}
	for name := range volumes {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "vol-"))
		if err == nil && number > 0 && number < lunsPerTarget {
			luns = append(luns, uint16(number))
		}
	}
	return luns
}

// readInTurn reads from the LUNs in turn, and returns the owner's figures.
func (f *field) readInTurn(ctx context.Context, session *initiator.Session, luns []uint16) (map[string]float64, error) {
	acting, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for n := 0; acting.Err() == nil; n++ {
			at := uint64(n/len(luns)*7%(areaOfLUN(len(luns))/size)) * (size / blockSize)
			if _, err := session.Good(ctx, initiator.Read(luns[n%len(luns)], at, size/blockSize, blockSize)); err != nil {
				ended <- err
				return
			}
			done.Add(1)
		}
		ended <- nil
	}()
	figures, err := f.window(ctx, &done)
	stop()
	if lost := <-ended; lost != nil {
		return nil, lost
	}
	return figures, err
}

// window counts the completed operations in a time, and the owner's CPU time.
func (f *field) window(ctx context.Context, done *atomic.Int64) (map[string]float64, error) {
	pid := []int{f.Gateways[f.owner].Pid()}
	if err := netns.Wait(ctx, time.Duration(warmup*float64(time.Second))); err != nil {
		return nil, err
	}
	before, err := harness.CPU(pid)
	if err != nil {
		return nil, err
	}
	began, first := time.Now(), done.Load()
	if err := netns.Wait(ctx, time.Duration(f.plan.seconds*float64(time.Second))); err != nil {
		return nil, err
	}
	after, err := harness.CPU(pid)
	count := float64(done.Load() - first)
	if err != nil || count == 0 {
		return nil, fmt.Errorf("no read was answered: %w", err)
	}
	seconds := time.Since(began).Seconds()
	spent := (after - before).Seconds()
	return map[string]float64{"iops": count / seconds, "bytes_per_second": size * count / seconds,
		cpu: spent / count, netCPU: (spent - f.standing*seconds) / count}, nil
}
