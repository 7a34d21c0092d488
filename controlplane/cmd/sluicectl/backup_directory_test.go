package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestADirectoryOfBackupsKeepsTheNewestAndOtherFiles(t *testing.T) {
	directory := &backupDirectory{path: t.TempDir(), keep: 2}
	now := time.Date(2026, 11, 28, 23, 0, 0, 0, time.FixedZone("", 3600))
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for day := range 4 {
		write(directory.next(now.AddDate(0, 0, day)))
	}
	for _, other := range []string{"sluice-store-before-upgrade.db", "sluice-store-20261128T220000Z.db.new", "notes"} {
		write(filepath.Join(directory.path, other))
	}
	if err := directory.removeOld(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(directory.path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := []string{"notes", "sluice-store-20261128T220000Z.db.new", "sluice-store-20261130T220000Z.db", "sluice-store-20261201T220000Z.db",
		"sluice-store-before-upgrade.db"}
	if !slices.Equal(names, want) {
		t.Errorf("the directory has %q", names)
	}
}
