package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// defaultKept is two weeks of daily backups.
	defaultKept = 14
	// backupName is the name of a file in such a directory, and backupPattern matches no other file. Names sort as their times do.
	backupName    = "sluice-store-20060102T150405Z.db"
	backupPattern = "sluice-store-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z.db"
)

// backupDirectory has the last backups.
type backupDirectory struct {
	path string
	keep int
}

// next returns the name of the file of a backup that begins now.
func (d *backupDirectory) next(now time.Time) string {
	return filepath.Join(d.path, now.UTC().Format(backupName))
}

// removeOld removes all but the newest files. Others in the directory stay.
func (d *backupDirectory) removeOld() error {
	names, err := filepath.Glob(filepath.Join(d.path, backupPattern))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-d.keep)] {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("an old backup: %w", err)
		}
	}
	return nil
}
