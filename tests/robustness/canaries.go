package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// canary is a gateway in which one rule of DESIGN §3 is switched off. The histories must show it.
type canary struct {
	// name: the program is sluice-gateway-NAME.
	name string
	rule string
	// lacks says what is switched off.
	lacks string
	// cluster: it shows only where several gateways serve a volume.
	cluster bool
}

var canaries = []canary{
	{name: "r1-two-owners", rule: "R1", lacks: "a forwarder executes commands itself instead of forwarding them", cluster: true},
	{name: "r2-no-fence", rule: "R2", lacks: "the next owner opens a volume without its lock, the former one unfenced", cluster: true},
	{name: "r4-serves-on", rule: "R4", lacks: "an owner that sees a newer epoch goes on answering", cluster: true},
	{name: "r5-ranges-freed", rule: "R5", lacks: "a command's block range is free as soon as its nexus or task is gone"},
	{name: "r6-late-commands", rule: "R6", lacks: "what was not heard for 3 s is executed, and so is what waited during a stall"},
	{name: "r6-old-tokens", rule: "R6", lacks: "the owner takes forwarded commands with tokens of any age", cluster: true},
}

const canaryRuns = 12 // seeds until a canary counts as not found out

// findOut runs every canary that is there until its histories show it.
func findOut(ctx context.Context, e experiment, directory string) bool {
	good := true
	for _, c := range canaries {
		e.gateway, e.clustered = filepath.Join(directory, "sluice-gateway-"+c.name), c.cluster
		if _, err := os.Stat(e.gateway); err != nil {
			fmt.Printf("SKIP canary %s (%s: %s): %v\n", c.name, c.rule, c.lacks, err)
			continue
		}
		good = findOutOne(ctx, e, c) && good
	}
	return good
}

func findOutOne(ctx context.Context, e experiment, c canary) bool {
	began := time.Now()
	for range canaryRuns {
		fmt.Printf("canary %s, seed %d\n", c.name, e.seed)
		v, err := e.run(ctx)
		if err != nil {
			fmt.Printf("FAIL canary %s, seed %d: %v\n", c.name, e.seed, err)
			return false
		}
		fmt.Print(v.summary())
		if found := v.violations(); len(found) > 0 {
			fmt.Println(found[0])
			fmt.Printf("PASS canary %s (%s: %s) was found out with seed %d in %v\n", c.name, c.rule, c.lacks, e.seed,
				time.Since(began).Round(time.Second))
			return true
		}
		e.seed++
	}
	fmt.Printf("FAIL canary %s (%s: %s) was not found out in %d runs\n", c.name, c.rule, c.lacks, canaryRuns)
	return false
}
