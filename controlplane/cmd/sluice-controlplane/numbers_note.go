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

// numbersNote tells what numbers restores went on from. A backup does not know of its restores, and a store that was restored is lost with
// what it knew: so it is kept beside the data, and beside the backup, each of which outlives the other where the disk is lost, or another
// backup is taken.
type numbersNote struct{ paths []string }

// noteBeside is the note of a data directory, and of a backup where there is one.
func noteBeside(directory, backup string) numbersNote {
	n := numbersNote{[]string{filepath.Join(directory, "restored-numbers.json")}}
	if backup != "" {
		n.paths = append(n.paths, backup+".restored")
	}
	return n
}

// read gives what is noted, in whichever place.
func (n numbersNote) read() (store.Numbers, error) {
	all := store.Numbers{}
	for _, path := range n.paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var noted store.Numbers
		if err == nil {
			err = json.Unmarshal(text, &noted)
		}
		if err != nil {
			return nil, fmt.Errorf("which numbers earlier restores went on from: %s: %w: mend or remove it; without it numbers may be "+
				"given that were given before", path, err)
		}
		all.Above(noted)
	}
	return all, nil
}

// write notes them in all places. A backup may lie where nobody writes: then `missing` is its place.
func (n numbersNote) write(numbers store.Numbers) (missing string, err error) {
	text, err := json.MarshalIndent(numbers, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(n.paths[0]), 0o700); err != nil {
		return "", err
	}
	for i, path := range n.paths {
		err := replace(path, append(text, '\n'))
		switch {
		case err != nil && i == 0:
			return "", fmt.Errorf("which numbers this restore goes on from could not be noted: %w", err)
		case err != nil:
			missing = path
		}
	}
	return missing, nil
}

// replace writes a file so that a power cut leaves the old one or the new.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
