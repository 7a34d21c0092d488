package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// wallClock is one process's CLOCK_REALTIME, which libfaketime shifts by what a file says. Other clocks don't jump on real
// machines. The file is empty where there is no libfaketime.
type wallClock struct {
	of   string
	file string
}

// newClock gives the clock, and the environment in which a process goes by it; nil: it goes by the machine's.
func newClock(directory, of string) (*wallClock, []string, error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, nil, err
	}
	c := &wallClock{of: of, file: filepath.Join(directory, of+".clock")}
	return c, []string{"LD_PRELOAD=" + libraries[0], "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1"}, c.set("+0")
}

func (c *wallClock) set(shift string) error {
	next := c.file + ".new"
	if err := os.WriteFile(next, []byte(shift+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

// jumps are faults: the clock goes to another time, and back.
func (c *wallClock) jumps() []*fault {
	if c == nil {
		return nil
	}
	var all []*fault
	for _, shift := range []string{"+3600", "-86400"} {
		all = append(all, &fault{name: fmt.Sprintf("wall clock of %s jumps by %s s", c.of, shift), on: "clock of " + c.of, kind: "clock",
			weight: 1, shortest: 100 * time.Millisecond, longest: 3 * time.Second,
			do:   func(context.Context) error { return c.set(shift) },
			undo: func(context.Context) error { return c.set("+0") }})
	}
	return all
}
