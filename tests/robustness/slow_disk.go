package main

import (
	"context"
	"time"

	"sluice.dev/sluice/tests/disk"
)

// slowness is a fault: sometimes the disk takes longer than hosts wait before a retry after a reset. So an original is still in
// progress when its retry arrives (R5), and its owner may be declared dead meanwhile (R2). nil: the machine has no such disk.
func slowness(d *disk.Disk, name string) []*fault {
	if d == nil {
		return nil
	}
	return []*fault{{name: "slow disk under " + name, on: "disk under " + name, kind: "slow disk", weight: 4, shortest: 500 * time.Millisecond,
		longest: 8 * time.Second,
		do: func(context.Context) error {
			d.Slow(slowEvery, slowDelay)
			return nil
		},
		undo: func(context.Context) error {
			d.Slow(0, 0)
			return nil
		}}}
}

const (
	slowEvery = 40
	slowDelay = 1300 * time.Millisecond
)
