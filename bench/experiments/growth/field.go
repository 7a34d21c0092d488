package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	// The core of a process, and the processes with which it shares the core, determine how many commands arrive with one
	// receive.
	targetCore, clientCore = 0, 1
	// Fewer than a target may have (limits::kMaxLuns). All sessions of the earlier reports had this number.
	lunsPerTarget = 1024
	some          = 32 // sessions
	loginsAtOnce  = 8
	maxSessions   = 4096 // of a host
	warmup        = 0.1  // seconds
	// Hosts with this number of sessions do not ping each of them all the time.
	pingAfter, silenceLimit, loginTimeout = 30 * time.Second, 90 * time.Second, 30 * time.Second
)

// alone is a gateway without a control plane, with one LUN: the reference on the same machine in the same round.
type alone struct {
	process *netns.Process
	portal  string
}

const aloneTarget = "iqn.2026-11.dev.sluice:alone"

func startAlone(ctx context.Context, b *harness.Bench) (*alone, error) {
	a := &alone{portal: "127.0.0.1:3270"}
	path := func(name string) string { return filepath.Join(b.Directory, name) }
	a.process = &netns.Process{Name: "alone", Log: path("alone.log"), Arguments: []string{b.Programs + "/sluice-gateway", "--listen", a.portal,
		"--target", aloneTarget, "--lun", fmt.Sprintf("0=file:%s,size=%d,io=buffered", path("alone.img"), span), "--reactors", "1",
		"--state-dir", path("alone.state"), "--admin-socket", "off"}}
	return a, a.start(ctx)
}

func (a *alone) start(ctx context.Context) error {
	if err := a.process.Start(); err != nil {
		return err
	}
	if err := netns.UntilListens(ctx, a.process, a.portal); err != nil {
		return err
	}
	return harness.Pin(a.process.Pid(), targetCore)
}

// field is a growing cluster.
type field struct {
	*harness.Bench
	*cluster.Cluster
	plan     plan
	alone    *alone
	echo     *bareEcho
	gateways int
	owners   *cluster.Owners
	// owner of the first LUN, and another gateway if there is one.
	owner, other int
	sessions     []*initiator.Session
	filled       bool
	// standing is the last measured share of a core that the idle owner used.
	standing float64
}

func start(ctx context.Context, b *harness.Bench, p plan, a *alone, e *bareEcho, gateways int) (*field, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	directory := filepath.Join(b.Directory, fmt.Sprintf("of-%d", gateways))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return nil, err
	}
	made, err := cluster.Start(ctx, cluster.Options{Programs: b.Programs, Directory: directory, Gateways: gateways, Volumes: 1,
		Replicas: 1, GatewayEnvironment: harness.SteadyGateways})
	if err != nil {
		return nil, err
	}
	return &field{Bench: b, Cluster: made, plan: p, alone: a, echo: e, gateways: gateways}, made.WaitReady(ctx)
}

// locate finds the owner of the first LUN, and pins the measured gateways to a core.
func (f *field) locate(ctx context.Context) error {
	owner, err := f.Owner(ctx, 0)
	if err != nil {
		return err
	}
	f.owner, f.other = owner, (owner+1)%f.gateways
	for _, at := range []int{f.owner, f.other} {
		if err := harness.Pin(f.Gateways[at].Pid(), targetCore); err != nil {
			return err
		}
	}
	if f.filled {
		return nil
	}
	f.filled = true // every block is allocated, in both: holes are read faster
	for _, way := range []string{"standalone", "direct"} {
		load := f.load(way, "write")
		load.Sequential, load.Size, load.Warmup, load.Seconds = true, 256<<10, 0, 0.5
		if _, err := f.Drive(ctx, []harness.Load{load}); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) load(way, op string) harness.Load {
	load := harness.Load{Op: op, Size: size, Depth: depth, Span: span, Warmup: warmup, Seconds: f.plan.seconds, Core: clientCore, Pinned: true}
	if way == "standalone" {
		load.Portal, load.Target, load.Initiator = f.alone.portal, aloneTarget, cluster.Initiator+"1"
		load.Watch = []int{f.alone.process.Pid()}
		return load
	}
	load.Target, load.Initiator = cluster.Target, cluster.Initiator+"1"
	load.Portal, load.Watch = f.Portals(f.owner)[0], []int{f.Gateways[f.owner].Pid()}
	if f.other != f.owner { // both count in both ways
		load.Watch = append(load.Watch, f.Gateways[f.other].Pid())
	}
	if way == "forwarded" {
		load.Portal = f.Portals(f.other)[0]
	}
	return load
}

func (f *field) drive(ctx context.Context, way, op string) (map[string]float64, error) {
	results, err := f.Drive(ctx, []harness.Load{f.load(way, op)})
	if err != nil && !f.alone.process.Running() {
		// A gateway that had no core for 2 s ends itself, as intended (limits::kWatchdogLimit): this machine is busy.
		fmt.Printf("the standalone gateway has ended, and is started again: %s\n", f.alone.process.LogTail(1))
		if err := f.alone.start(ctx); err != nil {
			return nil, err
		}
		results, err = f.Drive(ctx, []harness.Load{f.load(way, op)})
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, f.alone.process.LogTail(5))
	}
	return harness.Sum(results), nil
}

// idleUse returns memory and CPU use of the idle owner: the least of a few windows, because new objects are still being reported to
// the control plane.
func (f *field) idleUse(ctx context.Context) (map[string]float64, error) {
	owner := []int{f.Gateways[f.owner].Pid()}
	least, both := math.Inf(1), math.Inf(1)
	for range harness.Pick(f.Mode, 1, 2, 5) {
		shares, err := idle(ctx, owner, f.load("direct", "read").Watch)
		if err != nil {
			return nil, err
		}
		least, both = min(least, shares[0]), min(both, shares[1])
	}
	f.standing = least
	_, memory, err := harness.Resident(owner[0])
	return map[string]float64{"target_memory_bytes": float64(memory), "idle_cpu_share": least, "pair_idle_cpu_share": both}, err
}

// idle returns the share of a core that each group of processes uses in a second, in which each sends its reports to the control
// plane.
func idle(ctx context.Context, groups ...[]int) ([]float64, error) {
	before, shares := make([]time.Duration, len(groups)), make([]float64, len(groups))
	began := time.Now()
	for i, pids := range groups {
		var err error
		if before[i], err = harness.CPU(pids); err != nil {
			return nil, err
		}
	}
	if err := netns.Wait(ctx, time.Second); err != nil {
		return nil, err
	}
	for i, pids := range groups {
		after, err := harness.CPU(pids)
		if err != nil {
			return nil, err
		}
		shares[i] = (after - before[i]).Seconds() / time.Since(began).Seconds()
	}
	return shares, nil
}

// moreLUNs increases the number of LUNs: of the cluster's target, and of others when that one is full.
func (f *field) moreLUNs(ctx context.Context, luns int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if err := f.Grow(ctx, min(luns, lunsPerTarget)); err != nil {
		return err
	}
	if luns > lunsPerTarget {
		if err := f.apply(ctx, moreTargets(luns)); err != nil {
			return err
		}
	}
	f.Volumes = luns
	if err := f.WaitReady(ctx); err != nil {
		return err
	}
	if f.owners == nil {
		f.owners = f.FollowOwners(context.WithoutCancel(ctx)) // it ends with the cluster's process
	}
	return f.eachLUN(ctx, f.Portals(0)[0])
}

// eachLUN waits until the last LUN of the cluster's target answers.
func (f *field) eachLUN(ctx context.Context, portal string) error {
	session, err := f.logIn(ctx, portal, 0)
	if err != nil {
		return err
	}
	defer session.LogOut()
	return netns.Until(ctx, func() error {
		_, err := session.Good(ctx, initiator.TestUnitReady(uint16(min(f.Volumes, lunsPerTarget)-1)))
		return err
	})
}

func object(text *strings.Builder, kind, name, spec string) {
	fmt.Fprintf(text, "---\napiVersion: sluice.dev/v1\nkind: %s\nmeta: {name: %s}\nspec: {%s}\n", kind, name, spec)
}

// moreTargets returns targets for the LUNs beyond those of the first target.
func moreTargets(luns int) string {
	var text strings.Builder
	for from := lunsPerTarget; from < luns; from += lunsPerTarget {
		var mapped []string
		for i := from; i < min(luns, from+lunsPerTarget); i++ {
			object(&text, "Volume", cluster.VolumeName(i), fmt.Sprintf("pool: %s, sizeBytes: %d", cluster.PoolName, span))
			mapped = append(mapped, fmt.Sprintf("{id: %d, volume: %s}", i-from, cluster.VolumeName(i)))
		}
		name := fmt.Sprintf("more-%d", from/lunsPerTarget)
		object(&text, "Target", name, fmt.Sprintf("iqn: \"iqn.2026-11.dev.sluice:%s\", gatewayPool: default, paths: 2, luns: [%s], hosts: [host-1]",
			name, strings.Join(mapped, ", ")))
	}
	return text.String()
}

func (f *field) apply(ctx context.Context, objects string) error {
	file := filepath.Join(f.Bench.Directory, "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		return err
	}
	_, err := f.Control(ctx, "apply", "-f", file)
	return err
}

func (f *field) logIn(ctx context.Context, portal string, n int) (*initiator.Session, error) {
	return initiator.Login(ctx, initiator.Options{Portal: portal, Target: cluster.Target, LoginTimeout: loginTimeout,
		Initiator: fmt.Sprintf("%s%d", cluster.Initiator, 2+n%(cluster.MaxHosts-1)), ISID: [6]byte{0x80, 0, 0, 0, byte(n >> 8), byte(n)},
		PingAfter: pingAfter, SilenceLimit: silenceLimit})
}

// moreSessions increases the number of sessions, all with the owner of the first LUN.
func (f *field) moreSessions(ctx context.Context, sessions int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if len(f.sessions) == 0 {
		var text strings.Builder
		for i := range cluster.MaxHosts {
			object(&text, "Host", fmt.Sprintf("host-%d", i+1), fmt.Sprintf("initiators: [\"%s%d\"], allowUnauthenticated: true, maxSessions: %d",
				cluster.Initiator, i+1, maxSessions))
		}
		if err := f.apply(ctx, text.String()); err != nil {
			return err
		}
	}
	from := len(f.sessions)
	f.sessions = append(f.sessions, make([]*initiator.Session, sessions-from)...)
	portals := f.Portals(f.owner)
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	turns := make(chan struct{}, loginsAtOnce)
	for i := from; i < sessions; i++ {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			session, err := f.logIn(ctx, portals[i%len(portals)], 1+i)
			if err != nil {
				failed.Store(&err)
			}
			f.sessions[i] = session
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
