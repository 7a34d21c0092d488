package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice.dev/sluice/controlplane/internal/store"
)

// systemFile in a data directory names the system that the directory belongs to.
const systemFile = "system-id"

// systemNote is that file's content. A replica compares it with the store, so that it serves no other system: neither an empty store
// nor another etcd.
type systemNote struct {
	Cluster string `json:"cluster"`
	ID      string `json:"id"`
}

func systemPath(directory string) string { return filepath.Join(directory, systemFile) }

// readSystemNote gives the note of a data directory; without one its ID is empty.
func readSystemNote(directory string) (systemNote, error) {
	path := systemPath(directory)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return systemNote{}, nil
	}
	var note systemNote
	if err == nil {
		err = json.Unmarshal(text, &note)
	}
	if err == nil && !store.ValidSystemID(note.ID) {
		err = fmt.Errorf("%.64q is no system id", note.ID)
	}
	if err != nil {
		return systemNote{}, fmt.Errorf("which system the data directory belongs to: %s: %w: remove the file only when the store is surely the "+
			"right one", path, err)
	}
	return note, nil
}

// expectedSystem is the system that the store has to be, empty: any. The flag counts before the note.
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
		return "", fmt.Errorf("data directory %s belongs to system %s, not to %s, which --system-id names: give it its own --data-dir",
			s.dataDir, note.ID, s.systemID)
	}
	return note.ID, nil
}

// wrongSystem adds to an error where the expectation came from.
func (s *settings) wrongSystem(err error) error {
	var wrong *store.WrongSystemError
	if !errors.As(err, &wrong) || s.systemID != "" {
		return err
	}
	return fmt.Errorf("%w. The expected one is noted in %s: remove that file only to begin a new system on purpose, for gateways of the old "+
		"one then refuse this control plane", err, systemPath(s.dataDir))
}

// writeSystemNote notes a system in a data directory, where it is not noted yet.
func writeSystemNote(directory string, note systemNote) error {
	if have, err := readSystemNote(directory); err == nil && have == note {
		return nil
	}
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return replace(systemPath(directory), append(text, '\n'))
}
