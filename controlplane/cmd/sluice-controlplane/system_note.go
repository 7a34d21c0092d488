package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice.dev/sluice/controlplane/internal/store"
)

// systemFile is a file in the data directory that names the directory's system.
const systemFile = "system-id"

// systemNote is the content of systemFile. A replica compares it with the store, so that it does not serve another system's store or an
// empty one.
type systemNote struct {
	Cluster string `json:"cluster"`
	ID      string `json:"id"`
}

func systemPath(directory string) string { return filepath.Join(directory, systemFile) }

// readSystemNote reads the note of a data directory. Without a note its ID is empty.
func readSystemNote(directory string) (systemNote, error) {
	var note systemNote
	path := systemPath(directory)
	err := readNote(path, &note)
	if err == nil && note != (systemNote{}) && !store.ValidSystemID(note.ID) {
		err = fmt.Errorf("%s: %.64q is no system id", path, note.ID)
	}
	if err != nil {
		return systemNote{}, fmt.Errorf("the system of the data directory is unknown: %w: remove the file only if you are sure that the "+
			"store is the right one", err)
	}
	return note, nil
}

// expectedSystem returns the system id that the store must have; empty: any. The flag and the note must agree.
func (s *settings) expectedSystem() (string, error) {
	if s.systemID != "" && !store.ValidSystemID(s.systemID) {
		return "", fmt.Errorf("--system-id %.64q is no system id: `sluicectl status` shows it", s.systemID)
	}
	note, err := readSystemNote(s.dataDir)
	switch {
	case err != nil:
		return "", err
	case note.ID == "":
		return s.systemID, nil
	case note.Cluster != s.cluster:
		return "", fmt.Errorf("data directory %s belongs to --cluster %s, not %s: give each system a --data-dir of its own", s.dataDir,
			note.Cluster, s.cluster)
	case s.systemID != "" && s.systemID != note.ID:
		return "", fmt.Errorf("data directory %s belongs to system %s, but --system-id is %s: give each system a --data-dir of its own",
			s.dataDir, note.ID, s.systemID)
	}
	return note.ID, nil
}

// wrongSystem adds the file with the expected system id to an error about another system.
func (s *settings) wrongSystem(err error) error {
	var wrong *store.WrongSystemError
	if !errors.As(err, &wrong) || s.systemID != "" {
		return err
	}
	return fmt.Errorf("%w. The expected system id is in %s: remove that file only to begin a new system on purpose; gateways of the old "+
		"system then refuse this control plane", err, systemPath(s.dataDir))
}

// writeSystemNote stores the system of a data directory, unless the directory has this note already.
func writeSystemNote(directory string, note systemNote) error {
	if have, err := readSystemNote(directory); err == nil && have == note {
		return nil
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return writeNote(systemPath(directory), note)
}
