package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	gateways     = 3
	readyTime    = 3 * time.Minute
	faultTime    = 60 * time.Second // until I/O must go on after a fault
	silenceLimit = 5 * time.Second  // the initiator's own detection of a silent path
	share        = 80               // percent of an even share that each gateway owns before a fault
	// The control plane declares at most this number of nodes dead within a window, and delays the next one (DESIGN R1). With
	// Ceph each gateway is a separate node, and faults respect the limit.
	deadNodes   = 2
	deathWindow = 30 * time.Second
)

// bench is a cluster and a host.
type bench struct {
	settings
	*cluster.Cluster
	luns    int
	host    *initiator.Multipath
	watched []uint16
	owners  *cluster.Owners
	deaths  []time.Time // the last deadNodes of them
	report  func(record) error
}

// sample returns the LUNs to watch, at most `watched`, spread over all of them. LUN 0, whose owner is affected, is the first. The
// control plane reports the owners of the others.
func sample(luns, watched int) []uint16 {
	count := min(luns, watched)
	all := make([]uint16, count)
	for i := range all {
		all[i] = uint16(i * luns / count)
	}
	return all
}

// measure executes all faults with this number of LUNs, and reports each at once.
func measure(ctx context.Context, s settings, luns int, times counts, report func(record) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	directory, err := os.MkdirTemp("", "sluice-failover-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }() // scratch
	programs, err := filepath.Abs(s.programs)
	if err != nil {
		return err
	}
	starting, started := context.WithTimeout(ctx, readyTime)
	defer started()
	began := time.Now()
	options := cluster.Options{Programs: programs, Directory: directory, Gateways: gateways, Volumes: luns, Replicas: 1}
	if s.ceph != "" {
		script, err := filepath.Abs(s.ceph)
		if err != nil {
			return err
		}
		options.Ceph = &cluster.Ceph{Script: script}
	}
	made, err := cluster.Start(starting, options)
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }() // its namespaces end with this process in any case
	b := &bench{settings: s, Cluster: made, luns: luns, watched: sample(luns, s.watched), report: report}
	if err := made.WaitReady(starting); err != nil {
		return err
	}
	fmt.Printf("%d LUNs are made and owned after %.1f s\n", luns, time.Since(began).Seconds())
	b.owners = made.FollowOwners(ctx)
	b.host = initiator.Open(initiator.Config{Portals: made.AllPortals(), Target: cluster.Target, Initiator: cluster.Initiator + "1",
		LUNs: b.watched, ResetWait: s.resetWait, SilenceLimit: silenceLimit, ReconnectDelay: 50 * time.Millisecond})
	defer b.host.Close()
	if err := b.faults(ctx, times); err != nil {
		return fmt.Errorf("%w\n%s", err, made.Logs(15))
	}
	return nil
}

func (b *bench) faults(ctx context.Context, times counts) error {
	for _, step := range []struct {
		kind  string
		count int
		fault fault
	}{{kill, times.kills, b.kill}, {move, times.moves, b.move}, {nodeLoss, times.losses, b.cutLinks}} {
		for i := range step.count {
			r, err := b.runFault(ctx, step.kind, step.fault)
			if err != nil {
				return fmt.Errorf("%s %d: %w", step.kind, i+1, err)
			}
			fmt.Printf("%-12s %4d of %d, %d LUNs, %d of them struck: stall %.3f s, all go on after %.3f s, longest operation %.3f s, errors %d\n",
				step.kind, i+1, step.count, b.luns, r.Struck, r.Gap, r.All, r.Longest, r.Errors)
			if err := b.report(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault affects the owner of LUN 0. It returns a function that restores the cluster, which may be nil.
type fault func(ctx context.Context, owner int) (mend func() error, err error)

// awaitRecovery waits until no effect of earlier faults remains: all gateways serve and have their share of the LUNs again, all
// LUNs have owners, and all paths are up.
func (b *bench) awaitRecovery(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if err := b.WaitReady(ctx); err != nil {
		return err
	}
	for i := range gateways {
		number, err := b.Number(ctx, i)
		if err == nil {
			err = b.owners.WaitShare(ctx, number, b.luns*share/100/gateways)
		}
		if err != nil {
			return err
		}
	}
	return b.host.WaitPaths(ctx, len(b.host.Paths))
}

// runFault executes one fault, and waits until I/O of all affected LUNs continues and is calm.
func (b *bench) runFault(ctx context.Context, kind string, fault fault) (record, error) {
	if err := b.awaitRecovery(ctx); err != nil {
		return record{}, err
	}
	if err := b.mayDie(ctx, kind); err != nil {
		return record{}, err
	}
	var probes []*probe
	for _, lun := range b.watched {
		probes = append(probes, &probe{host: b.host, lun: lun})
	}
	stop := watch(ctx, probes)
	defer stop()
	undisturbed := b.usage()
	if err := netns.Wait(ctx, b.calm); err != nil {
		return record{}, err
	}
	calm := b.usage().since(undisturbed)
	owner, struck, err := b.affectedVolumes(ctx, kind)
	if err != nil {
		return record{}, err
	}
	before := b.usage()
	began := time.Now()
	mend, err := fault(ctx, owner)
	var last time.Time
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, faultTime)
		last, err = b.owners.WaitNewer(limited, struck)
		cancel()
	}
	took := b.usage().since(before)
	for process := range calm { // for the duration of the fault
		calm[process] *= time.Since(began).Seconds() / b.calm.Seconds()
	}
	for _, p := range probes {
		if err == nil {
			err = p.untilCalm(ctx, began, b.calm)
		}
	}
	stop()
	if mend != nil {
		err = errors.Join(err, mend())
	}
	r := summary(kind, b.luns, began, last, struck, probes)
	r.Takeovers = takeovers(b.owners.Now(), struck, began)
	r.CPU, r.Calm = took, calm
	return r, err
}

// mayDie waits until the control plane may declare another node dead at once, and counts it.
func (b *bench) mayDie(ctx context.Context, kind string) error {
	if b.ceph == "" || kind == move {
		return nil
	}
	if len(b.deaths) == deadNodes {
		if err := netns.Wait(ctx, time.Until(b.deaths[0].Add(deathWindow))); err != nil {
			return err
		}
		b.deaths = b.deaths[1:]
	}
	// The node is declared dead later than the fault: a node loss takes the initiator's own detection and longer.
	b.deaths = append(b.deaths, time.Now().Add(b.calm+silenceLimit))
	return nil
}

// affectedVolumes returns the owner of LUN 0, and the volumes that the fault will affect: all that it owns, or only that one.
func (b *bench) affectedVolumes(ctx context.Context, kind string) (int, map[string]cluster.Ownership, error) {
	owner, err := b.Owner(ctx, 0)
	if err != nil {
		return 0, nil, err
	}
	number, err := b.Number(ctx, owner)
	if err != nil {
		return 0, nil, err
	}
	struck := b.owners.Of(number)
	first := cluster.VolumeName(0)
	if _, known := struck[first]; !known {
		return 0, nil, errors.New("LUN 0 is on its way to another owner")
	}
	if kind == move {
		struck = map[string]cluster.Ownership{first: struck[first]}
	}
	return owner, struck, nil
}

// summary combines the probes' measurements; last is the time at which the control plane had an owner for every affected volume.
func summary(kind string, luns int, began, last time.Time, struck map[string]cluster.Ownership, probes []*probe) record {
	r := record{Kind: kind, LUNs: luns, Struck: len(struck), All: max(0, last.Sub(began).Seconds())}
	for _, p := range probes {
		gap, ended, longest := p.stall(began)
		r.Errors += p.errors
		r.Retries += p.retries
		if _, hit := struck[cluster.VolumeName(int(p.lun))]; !hit {
			continue
		}
		r.Stalls = append(r.Stalls, gap.Seconds())
		r.Gap = max(r.Gap, gap.Seconds())
		r.All = max(r.All, ended.Sub(began).Seconds())
		r.Longest = max(r.Longest, longest.Seconds())
	}
	if kind == nodeLoss {
		r.Beyond = max(0, r.Gap-silenceLimit.Seconds())
	}
	return r
}

// takeovers returns, for each affected volume, the time from the start of its owner's fence until the next owner served it.
func takeovers(now, struck map[string]cluster.Ownership, began time.Time) []float64 {
	var all []float64
	for name := range struck {
		if ownership := now[name]; ownership.FenceBegan.After(began) {
			all = append(all, ownership.Heard.Sub(ownership.FenceBegan).Seconds())
		}
	}
	slices.Sort(all)
	return all
}

func (b *bench) kill(_ context.Context, owner int) (func() error, error) {
	return b.Gateways[owner].Start, b.Gateways[owner].Kill()
}

func (b *bench) move(ctx context.Context, owner int) (func() error, error) {
	return nil, b.Move(ctx, 0, (owner+1)%gateways)
}

// cutLinks cuts every link of the owner's node. When the links are restored, it starts the gateway again if necessary, because the
// gateway that took over may have killed it (DESIGN R2, local).
func (b *bench) cutLinks(_ context.Context, owner int) (func() error, error) {
	var undo []func() error
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
