package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// wallClock is one process's CLOCK_REALTIME, with an offset from a file. Other clocks do not jump on real machines.
type wallClock struct {
	of   string
	file string
	// mapped: the file is changed in place, and contains a number of seconds, not text.
	mapped bool
}

// newClock returns the clock, and the environment in which libfaketime makes a process use it; nil: the process uses the
// machine's clock, because libfaketime is missing.
func newClock(directory, of string) (*wallClock, []string, error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, nil, err
	}
	c := &wallClock{of: of, file: filepath.Join(directory, of+".clock")}
	return c, []string{"LD_PRELOAD=" + libraries[0], "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1"}, c.set("+0")
}

// newGoClock is the same for a program that tests/cluster/wallclock has built, on which libfaketime has no effect.
func newGoClock(directory, of string) (*wallClock, []string, error) {
	c := &wallClock{of: of, file: filepath.Join(directory, of+".clock"), mapped: true}
	return c, []string{"SLUICE_TEST_CLOCK=" + c.file}, c.set("+0")
}

func (c *wallClock) set(shift string) error {
	if c.mapped {
		return c.setInPlace(shift)
	}
	next := c.file + ".new"
	if err := os.WriteFile(next, []byte(shift+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

func (c *wallClock) setInPlace(shift string) error {
	seconds, err := strconv.ParseInt(shift, 10, 64)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
	return errors.Join(err, file.Close())
}

// longestJump bounds the jumps of a gateway's clock. A leader waits longer than that for a move.
const longestJump, longestJumpOfReplica = 3 * time.Second, 12 * time.Second

// jumps are faults in which the clock jumps to another time, and back.
func (c *wallClock) jumps(longest time.Duration) []*fault {
	if c == nil {
		return nil
	}
	var all []*fault
	for _, shift := range []string{"+3600", "-86400"} {
		all = append(all, &fault{name: fmt.Sprintf("wall clock of %s jumps by %s s", c.of, shift), on: "clock of " + c.of, kind: "clock",
			weight: 1, shortest: 100 * time.Millisecond, longest: longest,
			do:   func(context.Context) error { return c.set(shift) },
			undo: func(context.Context) error { return c.set("+0") }})
	}
	return all
}
