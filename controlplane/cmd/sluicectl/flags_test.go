package main

import (
	"testing"

	"sluice.dev/sluice/tests/defaults/flagcheck"
)

func TestEachFlagHasTheDefaultThatItsHelpShows(t *testing.T) {
	for _, wrong := range flagcheck.Wrong(newRoot("sluicectl")) {
		t.Error(wrong)
	}
}
