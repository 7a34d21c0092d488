package main

import (
	"os"
	"testing"
)

func TestAClockJumpsThereAndBackForItsOwnProcessOnly(t *testing.T) {
	directory := t.TempDir()
	one, environment, err := newClock(directory, "one")
	if one == nil {
		t.Skip("no libfaketime here: ", err)
	}
	other, _, err := newClock(directory, "other")
	if err != nil {
		t.Fatal(err)
	}
	if environment[1] != "FAKETIME_TIMESTAMP_FILE="+one.file || one.file == other.file {
		t.Errorf("%v", environment)
	}
	shift := func(c *wallClock) string {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, f := range one.jumps(longestJump) {
		if err := f.do(t.Context()); err != nil || shift(one) == "+0\n" || shift(other) != "+0\n" {
			t.Errorf("%s: %v, %q, %q", f.name, err, shift(one), shift(other))
		}
		if err := f.undo(t.Context()); err != nil || shift(one) != "+0\n" {
			t.Errorf("end of %s: %v, %q", f.name, err, shift(one))
		}
	}
}
