package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

// mutation is a gateway in which one rule of DESIGN §3 is disabled (gateway/src/base/safety_mutation.h). The histories must show that.
type mutation struct {
	// name is the value of SLUICE_SAFETY_MUTATION.
	name string
	rule string
	// disabled describes the disabled rule.
	disabled string
	// cluster: the violation shows only if several gateways serve a volume.
	cluster bool
	// rbd: the violation shows only if volumes are in Ceph.
	rbd bool
	// only selects the faults, by kind, for which the rule exists: others may hide the violation.
	only string
	// blocks of each LUN that hosts use; 0: mutationBlocks.
	blocks uint64
	// swaps is the number of compare-and-writes in ten operations of a host; 0: the default.
	swaps int
	// scenario, if set, replaces the random faults.
	scenario string
	// backendFaults replace those of a gateway alone (netns.Standalone).
	backendFaults string
	// service: no promise about data is broken, but hosts wait without end.
	service bool
	// behind, if set, is another bound with the same effect as the disabled one. The histories must be right, and those of the
	// mutation that disables both must not.
	behind string
}

// Some bounds of R6 overlap (gateway/decisions/limits-and-timing.md). Each of such a pair is disabled alone, when histories must
// stay right, and together with the other one, when they must not.
var mutations = []mutation{
	{name: "r1-two-owners", rule: "R1", disabled: "a gateway that has the role Forward opens the volume and serves it", cluster: true, only: "^packet loss$"},
	{name: "r2-no-lock", rule: "R2", disabled: "volumes are opened without their lock", cluster: true, only: "^isolation$"},
	{name: "r2-old-snapshot", rule: "R2", disabled: "reservations kept beside the data are not used", cluster: true, scenario: "preempted"},
	{name: "r4-serves-on", rule: "R4", disabled: "a gateway that lost a volume reports so, and continues to serve it", cluster: true, only: "^(planned move|drain)$"},
	{name: "r5-ranges-freed", rule: "R5", disabled: "a command's blocks are free once its nexus or task is gone",
		only: "^(forged reset|reset by the host|unit reset)$"},
	{name: "r6-late-delivery", rule: "R6", disabled: "a silent connection is neither closed nor distrusted later", only: "^late delivery$"},
	{name: "r6-no-pings", rule: "R6", disabled: "no host is pinged, so none is known to be silent", only: "^late delivery$"},
	{name: "r6-never-closed", rule: "R6", disabled: "a connection that does not answer a ping is not closed", only: "^late delivery$", behind: "the check of ages"},
	{name: "r6-age-unlooked", rule: "R6", disabled: "commands that arrive after a silence are executed", only: "^late delivery$", behind: "the close after a ping"},
	{name: "r6-frozen", rule: "R6", disabled: "after a standstill a reactor continues where it was", cluster: true, only: "^left frozen$"},
	{name: "r6-hung-reactor", rule: "R6", disabled: "a hung reactor continues where it was, and the watchdog does not kill its process", only: "^left hung$"},
	{name: "r6-no-watchdog", rule: "R6", disabled: "the watchdog does not kill a process of which one reactor hangs", only: "^hung for good$", service: true},
	{name: "r2-no-blocklist", rule: "R2", disabled: "the lock of an image is broken and its holder not blocklisted", rbd: true, only: "^left before Ceph$", blocks: 12},
	{name: "r2-lock-on-demand", rule: "R2", disabled: "an image's lock is the only fence, and goes to the next client that writes", rbd: true, only: "^isolation$",
		blocks: 1, swaps: 6},
	{name: "r12-rbd-cache", rule: "R12", disabled: "images acknowledge writes from a cache in memory", rbd: true, only: "^kill$"},
	{name: "r6-old-tokens", rule: "R6", disabled: "forwarded commands are taken however old their token is", cluster: true, only: "^left on the way$"},
	{name: "r6-lingering", rule: "R6", disabled: "what a forwarding socket holds outlives its process", cluster: true,
		only: "^left by the dead$", behind: "the life of tokens"},
	{name: "r6-orphans", rule: "R6", disabled: "what a forwarding socket holds outlives its process, and is taken however old its token is",
		cluster: true, only: "^left by the dead$"},
	// The backend is slow for longer than limits::kAbortBound, and hosts repeat a write after a reset within that time. A slow device
	// would not do: Linux executes the writes to a file one after the other.
	{name: "r5-detached-freed", rule: "R5", disabled: "the blocks of a detached command are free", only: "^(forged reset|reset by the host)$",
		backendFaults: "lun1.img=delay-every=50;delay-ms=9000", blocks: 6},
	{name: "any-image", rule: "identity of images", disabled: "an image is not compared with its record", cluster: true, only: "^replaced image$"},
	{name: "any-pool", rule: "identity of pools", disabled: "a directory without a marker is marked, though one is known", cluster: true,
		only: "^missing pool$"},
}

const (
	mutationRuns     = 20 // seeds until a mutation counts as undetected
	backedRuns       = 2  // seeds with only one of two overlapping bounds
	mutationBlocks   = 2  // of each LUN: the more clients interact, the sooner the violation shows
	mutationVariable = "SLUICE_SAFETY_MUTATION"
)

// broken returns the findings that reveal a mutation.
func (c mutation) broken(v *verdict) []string {
	found := append(v.violations(), v.findings[claimRecorded]...)
	if c.service {
		found = append(append(found, v.findings[claimAnswered]...), v.findings[claimRecovers]...)
	}
	return found
}

// findOut runs the gateway as each of the chosen mutations until its histories show the violation.
func findOut(ctx context.Context, e experiment, chosen *regexp.Regexp) bool {
	if why := isMutationBuild(ctx, e.gateway); why != nil {
		fmt.Printf("FAIL %s has no safety mutations, build the preset `mutation`: %v\n", e.gateway, why)
		return false
	}
	good := true
	for _, c := range mutations {
		if chosen.MatchString(c.name) {
			good = findOutOne(ctx, e, c) && good
		}
	}
	return good
}

// isMutationBuild checks for a mutation build, which refuses an unknown name.
func isMutationBuild(ctx context.Context, gateway string) error {
	command := exec.CommandContext(ctx, gateway, "--version")
	command.Env = append(os.Environ(), mutationVariable+"=none-such")
	if output, err := command.CombinedOutput(); err == nil {
		return fmt.Errorf("it takes any name: %s", output)
	}
	command = exec.CommandContext(ctx, gateway, "--version")
	return command.Run()
}

func findOutOne(ctx context.Context, e experiment, c mutation) bool {
	began := time.Now()
	if err := os.Setenv(mutationVariable, c.name); err != nil {
		fmt.Printf("FAIL mutation %s: %v\n", c.name, err)
		return false
	}
	defer func() { _ = os.Unsetenv(mutationVariable) }()
	e.clustered, e.rbd, e.scenario, e.few = c.cluster || c.rbd, c.rbd, c.scenario, cmp.Or(c.blocks, mutationBlocks)
	e.swaps, e.backendFaults = c.swaps, c.backendFaults
	if c.only != "" {
		e.only = regexp.MustCompile(c.only)
	}
	runs := mutationRuns
	if c.behind != "" {
		runs = backedRuns
	}
	for range runs {
		fmt.Printf("mutation %s, seed %d\n", c.name, e.seed)
		v, err := e.run(ctx)
		if err != nil {
			fmt.Printf("FAIL mutation %s, seed %d: %v\n", c.name, e.seed, err)
			return false
		}
		fmt.Print(v.summary())
		if found := c.broken(v); len(found) > 0 {
			fmt.Println(found[0])
			if c.behind != "" {
				fmt.Printf("FAIL mutation %s (%s: %s) broke a promise with seed %d: %s is not enough\n", c.name, c.rule, c.disabled, e.seed, c.behind)
				return false
			}
			fmt.Printf("PASS mutation %s (%s: %s) was found out with seed %d in %v\n", c.name, c.rule, c.disabled, e.seed,
				time.Since(began).Round(time.Second))
			return true
		}
		e.seed++
	}
	if c.behind != "" {
		fmt.Printf("PASS mutation %s (%s: %s) does no harm: %s stands behind it, %d runs in %v\n", c.name, c.rule, c.disabled, c.behind, runs,
			time.Since(began).Round(time.Second))
		return true
	}
	fmt.Printf("FAIL mutation %s (%s: %s) was not found out in %d runs\n", c.name, c.rule, c.disabled, mutationRuns)
	return false
}

// mutationNames returns the names for messages.
func mutationNames() []string {
	var all []string
	for _, c := range mutations {
		all = append(all, c.name)
	}
	return slices.Sorted(slices.Values(all))
}
