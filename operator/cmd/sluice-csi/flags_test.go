package main

import (
	"testing"

	"sluice.dev/sluice/tests/defaults/helpcheck"
)

func TestEachFlagHasTheDefaultThatItsHelpShows(t *testing.T) {
	for _, wrong := range helpcheck.WrongFlags(command()) {
		t.Error(wrong)
	}
}
