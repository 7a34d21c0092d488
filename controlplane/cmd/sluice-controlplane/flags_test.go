package main

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/defaults/flagcheck"
)

func TestEachFlagHasTheDefaultThatItsHelpShows(t *testing.T) {
	for _, wrong := range flagcheck.Wrong(newRoot()) {
		t.Error(wrong)
	}
}

func TestANegativeAgeOfTheBackupIsRefused(t *testing.T) {
	s := &settings{logLevel: "info", logFormat: "text", backupLimit: -time.Hour}
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--backup-limit: got -1h0m0s") {
		t.Error(err)
	}
}
