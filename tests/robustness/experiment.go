package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/robustness/history"
)

// experiment is one run: a system, hosts on it, faults, and the verdict.
type experiment struct {
	// programs is the directory of all programs; gateway, if set, replaces the gateway there.
	programs, gateway string
	// replica, if set, is the control plane's program: one with an adjustable wall clock (tests/cluster/wallclock).
	replica string
	// clustered: a whole cluster; else one gateway alone.
	clustered bool
	// scenario, if set, replaces the random faults.
	scenario string
	etcd     string // program of tests/cluster/etcd
	// rbd: the volumes are in a real Ceph, which the script miniCeph makes; else in a directory.
	rbd      bool
	miniCeph string
	seed     uint64
	duration time.Duration
	// resetWait of the hosts; see initiator.Config.
	resetWait time.Duration
	// out is the directory for data that explains a failure.
	out     string
	verbose bool
	// only faults whose name or kind matches are executed.
	only *regexp.Regexp
	// recorded: only faults that replace recorded storage are executed, and each must be reported.
	recorded bool
	// devices: only faults of devices are executed, and while one hangs the other one must be served.
	devices bool
	// backendFaults of a gateway alone, as netns.Standalone has them; empty: slowSecondLUN.
	backendFaults string
	// few: clients use only this number of blocks of each LUN, so that they interact more often; 0: all blocks of the system.
	few uint64
	// swaps is the number of compare-and-writes in ten operations of a client; 0: swapsOfTen.
	swaps int
}

// verdict is the result of an experiment. Its findings, by claim, are forbidden observations.
type verdict struct {
	operations, blocks, maybes int
	counts                     map[string]int
	longest                    time.Duration
	faults                     map[string]int
	findings                   map[claim][]string
}

type claim string

// Claims.
const (
	claimLinear    claim = "every block's history is linearizable"
	claimDecided   claim = "the search for an order of each block's operations ends in time"
	claimWritten   claim = "no acknowledged write is missing, nothing is read that was not written"
	claimWhole     claim = "no block is torn, misplaced or of another run"
	claimAnswered  claim = "every operation ends well, whatever broke meanwhile"
	claimRecovers  claim = "every path works again after the last fault"
	claimLives     claim = "no process ends by itself, all stop in order"
	claimIsolated  claim = "while a device hangs, every host completes operations on the other one"
	claimRecorded  claim = "what is served matches what was recorded; anything else is refused"
	claimExercised claim = "every kind of fault was done, and operations were lost by them"
)

var claims = []claim{claimLinear, claimDecided, claimWritten, claimWhole, claimAnswered, claimRecovers, claimLives, claimIsolated, claimRecorded, claimExercised}

const (
	hostCount     = 2
	clientsOfHost = 4
	swapsOfTen    = 1
	recoverTime   = 30 * time.Second
	searchTime    = 60 * time.Second // of one block's history
)

// timeline prints and stores events with their times.
type timeline struct {
	began time.Time
	mu    sync.Mutex
	lines []string
}

func (t *timeline) note(loud bool, format string, arguments ...any) {
	line := fmt.Sprintf("%8.3f s  ", time.Since(t.began).Seconds()) + fmt.Sprintf(format, arguments...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if loud {
		fmt.Println(line)
	}
}

func (e experiment) run(ctx context.Context) (*verdict, error) {
	directory, err := os.MkdirTemp("", "sluice-robustness-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }() // scratch
	events := &timeline{began: time.Now()}
	loud := func(format string, arguments ...any) { events.note(true, format, arguments...) }
	quiet := func(format string, arguments ...any) { events.note(e.verbose, format, arguments...) }
	system, err := e.start(ctx, directory, loud)
	if err != nil {
		return nil, err
	}
	defer func() { _ = system.close() }() // the namespaces end with this process in any case
	if e.devices && len(system.devices()) == 0 {
		return nil, errNoDevices
	}
	w := &workload{seed: e.seed, run: uint64(time.Now().UnixNano()), clients: clientsOfHost, swaps: cmp.Or(e.swaps, swapsOfTen), places: e.places(system),
		recorder: history.NewRecorder(), dedicated: e.devices, devices: system.devices()}
	w.hosts = e.hosts(system, quiet)
	closeHosts := sync.OnceFunc(func() {
		for _, multipath := range w.hosts {
			multipath.Close()
		}
	})
	defer closeHosts()
	v := &verdict{faults: map[string]int{}, findings: map[claim][]string{}}
	if err := waitPaths(ctx, w.hosts); err != nil {
		return nil, fmt.Errorf("before any fault: %w", err)
	}
	events.began = time.Now()
	if s, ok := scenarios[e.scenario]; ok {
		c := system.(*clustered)
		return v, e.follow(ctx, s.steps(c), c, w, v, events, closeHosts)
	}
	possible := system.faults(w.hosts)
	if e.devices {
		possible = isolationFaults(system.devices(), resetByAnother(system))
		e.duration = max(e.duration, devicesDuration)
	}
	all := plan(e.seed, e.duration, slices.DeleteFunc(possible, func(f *fault) bool {
		return e.recorded && !slices.Contains(recordedKinds, f.kind) || e.only != nil && !e.only.MatchString(f.name) && !e.only.MatchString(f.kind)
	}))
	if err := e.runUnderFaults(ctx, w, all, loud); err != nil {
		return nil, err
	}
	for _, p := range all {
		v.faults[p.fault.kind]++
	}
	e.recover(ctx, system, w, v)
	closeHosts()
	e.finish(system, w, v)
	e.checkHistory(w, v, events)
	return v, nil
}

func (e experiment) places(system system) []history.Place {
	return slices.DeleteFunc(system.places(), func(p history.Place) bool { return e.few > 0 && p.Block >= e.few })
}

// follow plays a scenario while clients act, and judges it.
func (e experiment) follow(ctx context.Context, steps []step, system *clustered, w *workload, v *verdict, events *timeline,
	closeHosts func(),
) error {
	acting, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.act(acting)
	}()
	err := playSteps(ctx, steps, func(format string, arguments ...any) { events.note(true, format, arguments...) })
	if err != nil {
		fmt.Println(system.seen(ctx))
	}
	stop()
	<-done
	var broken brokenPromise
	if errors.As(err, &broken) {
		v.find(claimWritten, broken.Error())
	} else if err != nil {
		return err
	}
	v.faults[e.scenario] = 1
	e.recover(ctx, system, w, v)
	closeHosts()
	e.finish(system, w, v)
	e.checkHistory(w, v, events)
	delete(v.findings, claimExercised) // failed steps are errors; lost operations do not matter
	return nil
}

func (e experiment) start(ctx context.Context, directory string, note noter) (system, error) {
	if e.clustered {
		replicas := clusterReplicas
		if s, ok := scenarios[e.scenario]; ok {
			replicas = s.replicas
		}
		ceph, err := e.cephOf()
		if err != nil {
			return nil, err
		}
		c, err := startCluster(ctx, cluster.Options{Programs: e.programs, Gateway: e.gateway, Etcd: e.etcd, Directory: directory,
			Replicas: replicas, Replica: e.replica, Ceph: ceph}, note)
		if err != nil {
			return nil, err
		}
		return c, c.startRecorded(ctx, e.seed, e.recorded)
	}
	gateway := e.gateway
	if gateway == "" {
		gateway = filepath.Join(e.programs, "sluice-gateway")
	}
	faults := cmp.Or(e.backendFaults, slowSecondLUN)
	if e.devices { // a slow backend would keep all clients from a device that fails for a short time
		faults = e.backendFaults
	}
	return startStandalone(ctx, gateway, faults, directory, note)
}

func (e experiment) hosts(system system, note noter) []*initiator.Multipath {
	var all []*initiator.Multipath
	for i := range hostCount {
		all = append(all, initiator.Open(initiator.Config{Portals: system.portals(), Target: system.target(), LUNs: system.luns(),
			Initiator: system.initiator(i), ResetWait: e.resetWait, AnyPath: 0.3, Note: note}))
	}
	return all
}

var errNoDevices = errors.New("this machine has no devices with faults: /dev/fuse is missing")

func waitPaths(ctx context.Context, hosts []*initiator.Multipath) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	for _, multipath := range hosts {
		if err := multipath.WaitPaths(ctx, len(multipath.Paths)); err != nil {
			return err
		}
	}
	return nil
}

// runUnderFaults runs clients and faults concurrently.
func (e experiment) runUnderFaults(ctx context.Context, w *workload, all []planned, note noter) error {
	acting, stop := context.WithTimeout(ctx, e.duration)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.act(acting)
	}()
	err := play(ctx, all, note)
	<-acting.Done()
	note("the last fault is over; operations under way end")
	<-done
	return err
}

func (e experiment) recover(ctx context.Context, system system, w *workload, v *verdict) {
	err := system.settle(ctx)
	if err == nil {
		err = waitPaths(ctx, w.hosts)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, recoverTime)
		defer cancel()
		err = w.readAll(ctx)
	}
	if err != nil {
		v.find(claimRecovers, err.Error())
	}
}

func (e experiment) finish(system system, w *workload, v *verdict) {
	v.findings[claimRecorded] = append(v.findings[claimRecorded], system.mismatches()...)
	v.findings[claimLives] = append(v.findings[claimLives], system.end()...)
	if err := w.readDisk(system.disk); err != nil {
		v.find(claimWritten, "on disk: "+err.Error())
	}
}

func (v *verdict) find(c claim, text string) { v.findings[c] = append(v.findings[c], text) }

func (e experiment) checkHistory(w *workload, v *verdict, events *timeline) {
	operations, bad := w.recorder.History()
	linear := history.Linearizable(operations, searchTime, e.draw)
	v.operations, v.blocks, v.maybes = linear.Operations, linear.Blocks, linear.Maybes
	v.counts, v.longest = w.counts, w.longest
	v.findings[claimLinear] = append(v.findings[claimLinear], linear.Wrong...)
	for _, place := range linear.Undecided {
		v.find(claimDecided, fmt.Sprintf("%v: not decided within %v", place, searchTime))
	}
	v.findings[claimWritten] = append(v.findings[claimWritten], history.Missing(operations)...)
	v.findings[claimWhole] = append(v.findings[claimWhole], bad...)
	for _, refusal := range w.refusals {
		v.find(claimAnswered, refusal)
	}
	if n := w.counts[initiator.Failed.String()] + w.counts[initiator.Unknown.String()]; n > 0 {
		v.find(claimAnswered, fmt.Sprintf("%d operations failed or their fate is unknown after %v", n, operationTimeout))
	}
	if v.maybes == 0 || len(v.faults) == 0 {
		v.find(claimExercised, fmt.Sprintf("%d operations without an answer, faults done: %v", v.maybes, v.faults))
	}
	if e.devices {
		v.findings[claimIsolated] = notServed(w.devices, operations, w.recorder.At, hostCount)
		v.findings[claimExercised] = append(v.findings[claimExercised], notDone(w.devices)...)
	}
	if e.recorded {
		for _, kind := range recordedKinds {
			if v.faults[kind] == 0 {
				v.find(claimExercised, "no fault of this kind was done: "+kind)
			}
		}
	}
	if len(v.violations()) > 0 || len(v.findings[claimDecided]) > 0 {
		if err := e.writeResults(operations, events); err != nil {
			v.find(claimLinear, err.Error())
		}
	}
}

// violations returns the findings that break a promise about data. A history that is not decided in time shows nothing.
func (v *verdict) violations() []string {
	return slices.Concat(v.findings[claimLinear], v.findings[claimWritten], v.findings[claimWhole])
}

// writeResults writes the history and the timeline of a failed run.
func (e experiment) writeResults(operations []history.Operation, events *timeline) error {
	if err := os.MkdirAll(e.out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(e.out, fmt.Sprintf("seed-%d", e.seed))
	file, err := os.Create(base + ".history.jsonl")
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(file)
	for _, o := range operations {
		err = errors.Join(err, encoder.Encode(o))
	}
	events.mu.Lock()
	text := strings.Join(events.lines, "\n") + "\n"
	events.mu.Unlock()
	return errors.Join(err, file.Close(), os.WriteFile(base+".timeline.txt", []byte(text), 0o644))
}

func (e experiment) draw(place history.Place, info porcupine.LinearizationInfo, model porcupine.Model) {
	path := filepath.Join(e.out, fmt.Sprintf("seed-%d-lun-%d-block-%d.html", e.seed, place.LUN, place.Block))
	if os.MkdirAll(e.out, 0o755) != nil || porcupine.VisualizePath(model, info, path) != nil {
		fmt.Println("no page could be written to", path)
	}
}

func (v *verdict) summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d operations on %d blocks, %d of them without an answer; longest %v\n", v.operations, v.blocks, v.maybes,
		v.longest.Round(time.Millisecond))
	for _, counts := range []map[string]int{v.counts, v.faults} {
		for _, key := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&text, "  %6d  %s\n", counts[key], key)
		}
	}
	return text.String()
}
