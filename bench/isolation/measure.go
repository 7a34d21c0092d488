package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	blockSize = 512
	transfer  = 4096 // bytes of a command
	// recovery is the time after a stall whose commands are in neither figure: the target completes what has waited.
	recovery = 500 * time.Millisecond
	binSize  = 100 * time.Millisecond
	// Without these a command could wait for a session that was dropped, and not for the target.
	silenceLimit, loginTimeout = time.Minute, 10 * time.Second
)

// record is one repetition of one target. bench/report/isolation.py makes the report from the records. All times are in seconds from
// the begin of the measurement.
type record struct {
	Subject    string `json:"isolationSubject"`
	Repetition int    `json:"repetition"`
	// Stalls are the times at which the device held all its requests.
	Stalls [][2]float64 `json:"stalls"`
	// Calm and Stalled are the latencies of commands on the healthy LUN that began while the device did not stall, or did.
	Calm    figures `json:"calm"`
	Stalled figures `json:"stalled"`
	// Ratio is that of the p99 values.
	Ratio float64 `json:"p99Ratio"`
	// Bins have the latencies by the time at which commands began.
	Bins   []bin  `json:"bins"`
	Errors int    `json:"errors"`
	Error  string `json:"firstError,omitempty"`
	// Waiting is the most requests that the device held.
	Waiting int64 `json:"held"`
}

type figures struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50Seconds"`
	P99   float64 `json:"p99Seconds"`
	Max   float64 `json:"maxSeconds"`
}

// bin is an interval of binSize; one without commands is missing.
type bin struct {
	From float64 `json:"from"`
	figures
}

// sample is one command: when it began, since the begin of the measurement, and how long it took.
type sample struct{ at, took time.Duration }

// load keeps commands in flight on one LUN, each after a pause.
type load struct {
	lun   uint16
	mib   uint64
	depth int
	pace  time.Duration

	mu      sync.Mutex
	samples []sample
	errors  int
	first   error
}

func (l *load) run(ctx context.Context, session *initiator.Session, began time.Time) {
	var all sync.WaitGroup
	for i := range l.depth {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(l.lun), uint64(i)))
			data := make([]byte, transfer)
			for ctx.Err() == nil {
				block := random.Uint64N(l.mib<<20/transfer) * (transfer / blockSize)
				command := initiator.Read(l.lun, block, transfer/blockSize, blockSize)
				if random.IntN(10) < 3 {
					command = initiator.Write(l.lun, block, data, blockSize)
				}
				at := time.Now()
				_, err := session.Good(ctx, command)
				took := time.Since(at)
				if ctx.Err() != nil {
					return
				}
				l.add(sample{at.Sub(began), took}, err)
				if err != nil {
					return // the session, or the target, is in no state to be measured
				}
				if l.pace > 0 {
					_ = netns.Wait(ctx, l.pace) // the loop checks ctx
				}
			}
		})
	}
	all.Wait()
}

func (l *load) add(s sample, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errors++
		l.first = cmp.Or(l.first, err)
		return
	}
	l.samples = append(l.samples, s)
}

// measure runs one repetition of one target.
func measure(ctx context.Context, s settings, chosen subject) (r record, err error) {
	directory, err := os.MkdirTemp("", "sluice-isolation-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(directory) }() // scratch
	d, err := disk.Mount(filepath.Join(directory, "backing"), filepath.Join(directory, "stalls"))
	if err != nil {
		return r, fmt.Errorf("the device that stalls needs /dev/fuse: %w", err)
	}
	files := [2]string{filepath.Join(directory, "stalls", "image"), filepath.Join(directory, "image")}
	var process *netns.Process
	defer func() {
		d.Resume() // a process cannot end before its calls do
		if process != nil {
			err = errors.Join(err, process.Kill())
		}
		err = errors.Join(err, d.Close())
	}()
	if err := makeFiles(files); err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	process, err = chosen.start(limited, s, directory, files)
	if err != nil {
		if process != nil {
			err = fmt.Errorf("%w\n%s", err, process.LogTail(20))
		}
		return r, err
	}
	session, err := logIn(limited, chosen)
	if err != nil {
		return r, err
	}
	defer session.Close()
	return underLoad(ctx, s, chosen, session, d)
}

// logIn opens the one session through which a host uses both LUNs. tgt accepts no ISID of zeros.
func logIn(ctx context.Context, chosen subject) (*initiator.Session, error) {
	session, err := initiator.Login(ctx, initiator.Options{Portal: portal, Target: iqn, Initiator: "iqn.2026-11.dev.sluice:host",
		ISID: [6]byte{0x80, 0, 0, 1, 0, 1}, SilenceLimit: silenceLimit, PingAfter: silenceLimit, LoginTimeout: loginTimeout})
	if err != nil {
		return nil, err
	}
	for _, lun := range chosen.luns { // the unit attentions of a new nexus
		err := netns.Until(ctx, func() error {
			_, err := session.Good(ctx, initiator.TestUnitReady(lun))
			return err
		})
		if err != nil {
			session.Close()
			return nil, err
		}
	}
	return session, nil
}

func underLoad(ctx context.Context, s settings, chosen subject, session *initiator.Session, d *disk.Disk) (record, error) {
	began := time.Now().Add(s.warm)
	acting, stop := context.WithCancel(ctx)
	loads := [2]load{{lun: chosen.luns[0], mib: sizes[0], depth: s.stalled, pace: s.pace},
		{lun: chosen.luns[1], mib: sizes[1], depth: s.neighbour}}
	var both sync.WaitGroup
	for i := range loads {
		both.Go(func() { loads[i].run(acting, session, began) })
	}
	err := netns.Wait(ctx, time.Until(began))
	r := record{Subject: chosen.name}
	var stalls []sample
	for range s.stalls {
		if err == nil {
			err = netns.Wait(ctx, s.calm)
		}
		from := time.Since(began)
		d.Hang()
		if err == nil {
			err = netns.Wait(ctx, s.stall)
		}
		r.Waiting = max(r.Waiting, d.Waiting())
		stalls = append(stalls, sample{from, time.Since(began) - from})
		d.Resume()
	}
	if err == nil {
		err = netns.Wait(ctx, s.calm)
	}
	end := time.Since(began)
	stop()
	both.Wait()
	if err != nil {
		return r, err
	}
	r.take(loads[1].samples, stalls, end)
	for i := range loads {
		r.Errors += loads[i].errors
		if loads[i].first != nil {
			r.Error = cmp.Or(r.Error, loads[i].first.Error())
		}
	}
	if r.Waiting == 0 {
		return r, errors.New("the device held no request during a stall")
	}
	if r.Calm.Count == 0 || r.Stalled.Count == 0 {
		return r, fmt.Errorf("%d commands without a stall, %d during one: %s", r.Calm.Count, r.Stalled.Count, r.Error)
	}
	return r, nil
}

// take sorts the samples of the healthy LUN by what the device did when they began. An interval that the end cuts has no bin.
func (r *record) take(samples, stalls []sample, end time.Duration) {
	var calm, stalled []time.Duration
	bins := map[int][]time.Duration{}
	for _, one := range samples {
		if one.at < 0 {
			continue // before the measurement
		}
		if number := int(one.at / binSize); time.Duration(number+1)*binSize <= end {
			bins[number] = append(bins[number], one.took)
		}
		switch during := phase(one.at, stalls); during {
		case inStall:
			stalled = append(stalled, one.took)
		case inCalm:
			calm = append(calm, one.took)
		}
	}
	for _, s := range stalls {
		r.Stalls = append(r.Stalls, [2]float64{s.at.Seconds(), (s.at + s.took).Seconds()})
	}
	for number, found := range bins {
		r.Bins = append(r.Bins, bin{(time.Duration(number) * binSize).Seconds(), figuresOf(found)})
	}
	slices.SortFunc(r.Bins, func(a, b bin) int { return cmp.Compare(a.From, b.From) })
	r.Calm, r.Stalled = figuresOf(calm), figuresOf(stalled)
	if r.Calm.P99 > 0 {
		r.Ratio = r.Stalled.P99 / r.Calm.P99
	}
}

type during int

const (
	inCalm during = iota
	inStall
	inRecovery
)

func phase(at time.Duration, stalls []sample) during {
	for _, s := range stalls {
		switch end := s.at + s.took; {
		case at >= s.at && at < end:
			return inStall
		case at >= end && at < end+recovery:
			return inRecovery
		}
	}
	return inCalm
}

// figuresOf has the quantiles by the nearest rank.
func figuresOf(values []time.Duration) figures {
	if len(values) == 0 {
		return figures{}
	}
	slices.Sort(values)
	at := func(share float64) float64 {
		return values[max(int(math.Ceil(share*float64(len(values)))), 1)-1].Seconds()
	}
	return figures{len(values), at(0.5), at(0.99), at(1)}
}
