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

// canary is a gateway in which one rule of DESIGN §3 is switched off (gateway/src/base/canary.h). The histories must
// show it.
type canary struct {
	// name is what SLUICE_CANARY is set to.
	name string
	rule string
	// lacks says what is switched off.
	lacks string
	// cluster: it shows only where several gateways serve a volume.
	cluster bool
	// rbd: it shows only where volumes live in Ceph.
	rbd bool
	// only are the faults, by kind, that the rule is made for: others may keep the canary from showing.
	only string
	// blocks of each LUN that hosts act on; 0: canaryBlocks.
	blocks uint64
	// swaps are so many of ten operations of a host; 0: as ever.
	swaps int
	// scenario, if set, takes the place of faults.
	scenario string
	// service: it breaks no promise about data, but hosts wait for ever.
	service bool
	// behind, if set, is the bound that does the same work as the one switched off: the histories must be right, and those of
	// the canary that lacks both must not.
	behind string
}

// Some bounds of R6 stand behind each other (gateway/decisions/limits-and-timing.md). Each of such a pair is
// switched off for itself, where histories must stay right, and with the other one, where they must not.
var canaries = []canary{
	{name: "r1-two-owners", rule: "R1", lacks: "who is told to forward opens the volume and serves it", cluster: true, only: "^packet loss$"},
	{name: "r2-no-lock", rule: "R2", lacks: "volumes are opened without their lock", cluster: true, only: "^isolation$"},
	{name: "r2-old-snapshot", rule: "R2", lacks: "reservations kept beside the data are not used", cluster: true, scenario: "preempted"},
	{name: "r4-serves-on", rule: "R4", lacks: "who has lost a volume says so, and goes on serving it", cluster: true, only: "^(planned move|drain)$"},
	{name: "r5-ranges-freed", rule: "R5", lacks: "a command's blocks are free once its nexus or task is gone",
		only: "^(forged reset|reset by the host|unit reset)$"},
	{name: "r6-late-delivery", rule: "R6", lacks: "who is silent is neither closed nor distrusted later", only: "^late delivery$"},
	{name: "r6-no-pings", rule: "R6", lacks: "nobody is pinged, so nobody is known to be silent", only: "^late delivery$"},
	{name: "r6-never-closed", rule: "R6", lacks: "who doesn't answer a ping is not closed", only: "^late delivery$", behind: "the look at ages"},
	{name: "r6-age-unlooked", rule: "R6", lacks: "what comes after a silence is executed", only: "^late delivery$", behind: "the close after a ping"},
	{name: "r6-frozen", rule: "R6", lacks: "after standing still a reactor goes on where it was", cluster: true, only: "^left frozen$"},
	{name: "r6-hung-reactor", rule: "R6", lacks: "a hung reactor goes on where it was, and nobody kills its process", only: "^left hung$"},
	{name: "r6-no-watchdog", rule: "R6", lacks: "nobody kills a process of which one reactor hangs", only: "^hung for good$", service: true},
	{name: "r2-no-blocklist", rule: "R2", lacks: "the lock of an image is broken and its holder not blocklisted", rbd: true, only: "^left before Ceph$", blocks: 12},
	{name: "r2-lock-on-demand", rule: "R2", lacks: "an image's lock is the only fence, and goes to whoever writes next", rbd: true, only: "^isolation$",
		blocks: 1, swaps: 6},
	{name: "r12-rbd-cache", rule: "R12", lacks: "images acknowledge writes from a cache in memory", rbd: true, only: "^kill$"},
	{name: "r6-old-tokens", rule: "R6", lacks: "forwarded commands are taken however old their token is", cluster: true, only: "^left on the way$"},
	{name: "r6-lingering", rule: "R6", lacks: "what a forwarding socket holds outlives its process", cluster: true,
		only: "^left by the dead$", behind: "the life of tokens"},
	{name: "r6-orphans", rule: "R6", lacks: "what a forwarding socket holds outlives its process, and is taken however old its token is",
		cluster: true, only: "^left by the dead$"},
	{name: "any-image", rule: "identity of images", lacks: "an image is not compared with its record", cluster: true, only: "^replaced image$"},
	{name: "any-pool", rule: "identity of pools", lacks: "a directory without a marker is marked, though one is known", cluster: true,
		only: "^missing pool$"},
}

const (
	canaryRuns     = 20 // seeds until a canary counts as not found out
	backedRuns     = 2  // seeds with which one of two bounds has to do alone
	canaryBlocks   = 2  // of each LUN: the more clients meet, the sooner it shows
	canaryVariable = "SLUICE_CANARY"
)

// broken are the findings that give a canary away.
func (c canary) broken(v *verdict) []string {
	found := append(v.violations(), v.findings[claimRecorded]...)
	if c.service {
		found = append(append(found, v.findings[claimAnswered]...), v.findings[claimRecovers]...)
	}
	return found
}

// findOut runs the gateway as each of the canaries chosen until its histories show it.
func findOut(ctx context.Context, e experiment, chosen *regexp.Regexp) bool {
	if why := isCanary(ctx, e.gateway); why != nil {
		fmt.Printf("FAIL %s knows no canaries, build the preset `canary`: %v\n", e.gateway, why)
		return false
	}
	good := true
	for _, c := range canaries {
		if chosen.MatchString(c.name) {
			good = findOutOne(ctx, e, c) && good
		}
	}
	return good
}

// isCanary: a canary build refuses a name that it doesn't know.
func isCanary(ctx context.Context, gateway string) error {
	command := exec.CommandContext(ctx, gateway, "--version")
	command.Env = append(os.Environ(), canaryVariable+"=none-such")
	if output, err := command.CombinedOutput(); err == nil {
		return fmt.Errorf("it takes any name: %s", output)
	}
	command = exec.CommandContext(ctx, gateway, "--version")
	return command.Run()
}

func findOutOne(ctx context.Context, e experiment, c canary) bool {
	began := time.Now()
	if err := os.Setenv(canaryVariable, c.name); err != nil {
		fmt.Printf("FAIL canary %s: %v\n", c.name, err)
		return false
	}
	defer func() { _ = os.Unsetenv(canaryVariable) }()
	e.clustered, e.rbd, e.scenario, e.few = c.cluster || c.rbd, c.rbd, c.scenario, cmp.Or(c.blocks, canaryBlocks)
	e.swaps = c.swaps
	if c.only != "" {
		e.only = regexp.MustCompile(c.only)
	}
	runs := canaryRuns
	if c.behind != "" {
		runs = backedRuns
	}
	for range runs {
		fmt.Printf("canary %s, seed %d\n", c.name, e.seed)
		v, err := e.run(ctx)
		if err != nil {
			fmt.Printf("FAIL canary %s, seed %d: %v\n", c.name, e.seed, err)
			return false
		}
		fmt.Print(v.summary())
		if found := c.broken(v); len(found) > 0 {
			fmt.Println(found[0])
			if c.behind != "" {
				fmt.Printf("FAIL canary %s (%s: %s) broke a promise with seed %d: %s is not enough\n", c.name, c.rule, c.lacks, e.seed, c.behind)
				return false
			}
			fmt.Printf("PASS canary %s (%s: %s) was found out with seed %d in %v\n", c.name, c.rule, c.lacks, e.seed,
				time.Since(began).Round(time.Second))
			return true
		}
		e.seed++
	}
	if c.behind != "" {
		fmt.Printf("PASS canary %s (%s: %s) does no harm: %s stands behind it, %d runs in %v\n", c.name, c.rule, c.lacks, c.behind, runs,
			time.Since(began).Round(time.Second))
		return true
	}
	fmt.Printf("FAIL canary %s (%s: %s) was not found out in %d runs\n", c.name, c.rule, c.lacks, canaryRuns)
	return false
}

// canaryNames, for people.
func canaryNames() []string {
	var all []string
	for _, c := range canaries {
		all = append(all, c.name)
	}
	return slices.Sorted(slices.Values(all))
}
