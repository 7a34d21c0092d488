package main

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/defaults/helpcheck"
)

func TestEachFlagHasTheDefaultThatItsHelpShows(t *testing.T) {
	for _, wrong := range helpcheck.WrongFlags(newRoot()) {
		t.Error(wrong)
	}
}

func TestEachCommandHasExamplesThatItAccepts(t *testing.T) {
	wrong, commands := helpcheck.WrongExamples(newRoot)
	for _, problem := range wrong {
		t.Error(problem)
	}
	if commands != 4 {
		t.Errorf("%d commands were found", commands)
	}
}

func TestANegativeAgeOfTheBackupIsRefused(t *testing.T) {
	s := &settings{logLevel: "info", logFormat: "text", backupLimit: -time.Hour}
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--backup-limit: got -1h0m0s") {
		t.Error(err)
	}
}
