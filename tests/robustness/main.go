// Command robustness injects all kinds of faults into a gateway, or a cluster, while hosts write and read single blocks over all
// paths, and judges the history: each block must be linearizable, and no acknowledged write may be missing. Everything runs in
// its own namespaces. `make robustness` runs it; the same seed plans the same faults at the same times.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/netns"
)

func main() {
	e := experiment{}
	var chosen *regexp.Regexp // mutations
	var runs int
	flag.StringVar(&e.programs, "programs", "build/bin", "directory of the programs")
	flag.StringVar(&e.gateway, "gateway", "", "another gateway than the one there")
	flag.StringVar(&e.replica, "replica", "", "in a cluster, a control plane made by tests/cluster/wallclock/build: then its wall clocks jump, too")
	flag.BoolVar(&e.clustered, "cluster", false, "break a cluster of three gateways instead of one gateway alone")
	flag.StringVar(&e.etcd, "etcd", "build/tools/etcd", "program of tests/cluster/etcd, for a cluster")
	flag.BoolVar(&e.rbd, "rbd", false, "a cluster whose volumes live in a real Ceph")
	flag.StringVar(&e.miniCeph, "mini-ceph", "tests/lib/mini-ceph", "script that makes one")
	flag.StringVar(&e.scenario, "scenario", "", "instead of faults by chance, in a cluster: rolling-upgrade, switch-down, etcd-lost, "+
		"controlplane-restored or preempted")
	flag.Uint64Var(&e.seed, "seed", 0, "of faults and clients; 0: a new one")
	flag.DurationVar(&e.duration, "duration", 45*time.Second, "how long clients act, for each run")
	flag.IntVar(&runs, "runs", 1, "how many runs, each with the next seed")
	flag.DurationVar(&e.resetWait, "reset-wait", time.Second, "how long hosts wait with a write's retry after a reset")
	flag.StringVar(&e.out, "out", "build/robustness", "where the history of a run that fails goes")
	flag.Func("mutations", "regular expression: the gateway given is a build of the preset `mutation`, and each mutation whose name matches must be "+
		"found out; there are "+strings.Join(mutationNames(), ", "), func(text string) (err error) {
		chosen, err = regexp.Compile(text)
		return err
	})
	flag.BoolVar(&e.recorded, "recorded", false, "in a cluster, only faults that put another process, store, pool, image, record or key in the place "+
		"of what was recorded, and each must be reported")
	flag.BoolVar(&e.devices, "devices", false, "only faults of devices, for at least "+devicesDuration.String()+": while one hangs, the other one "+
		"must be served")
	flag.StringVar(&e.backendFaults, "backend-faults", "", "of a gateway alone, as gateway/src/faulty_open.cc says; empty: "+slowSecondLUN)
	flag.BoolVar(&e.verbose, "v", false, "show what paths do")
	flag.Func("only", "regular expression: only faults whose name or kind matches", func(text string) (err error) {
		e.only, err = regexp.Compile(text)
		return err
	})
	flag.Parse()
	if _, known := scenarios[e.scenario]; e.scenario != "" && !known {
		fmt.Fprintf(os.Stderr, "-scenario %q: %s are possible\n", e.scenario,
			strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
		os.Exit(2)
	}
	e.clustered = e.clustered || e.scenario != "" || e.rbd || e.recorded
	if e.seed == 0 {
		e.seed = rand.Uint64N(1 << 32)
	}
	err := netns.Isolate()
	if err == nil {
		err = netns.OwnSharedMemory()
	}
	if err != nil {
		fmt.Println("SKIP robustness:", err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	good := false
	if chosen != nil {
		good = findOut(ctx, e, chosen)
	} else {
		good = repeat(ctx, e, runs)
	}
	if !good {
		os.Exit(1)
	}
}

// repeat runs one seed after the other, and stops at the first failure.
func repeat(ctx context.Context, e experiment, runs int) bool {
	for i := range runs {
		if i > 0 {
			e.seed++
		}
		if !runOne(ctx, e) {
			return false
		}
	}
	return true
}

func runOne(ctx context.Context, e experiment) bool {
	fmt.Printf("seed %d, %v; again: robustness -seed %[1]d -duration %v\n", e.seed, e.duration, e.duration)
	v, err := e.run(ctx)
	if errors.Is(err, errNoDevices) {
		fmt.Println("SKIP robustness:", err)
		return true
	}
	if err != nil {
		fmt.Printf("FAIL robustness, seed %d: %v\n", e.seed, err)
		return false
	}
	fmt.Print(v.summary())
	good := true
	for _, c := range claims {
		if c == claimIsolated && !e.devices {
			continue
		}
		if found := v.findings[c]; len(found) > 0 {
			good = false
			fmt.Printf("FAIL %s: %d findings, seed %d\n", c, len(found), e.seed)
			for _, text := range found[:min(len(found), findingsShown)] {
				fmt.Println(text)
			}
			continue
		}
		fmt.Printf("PASS %s (seed %d)\n", c, e.seed)
	}
	return good
}

const findingsShown = 5
