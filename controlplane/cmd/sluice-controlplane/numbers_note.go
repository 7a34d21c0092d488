package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sluice.dev/sluice/controlplane/internal/store"
)

// numbersNote has the numbers from which restores continued. A backup does not contain its later restores, and a restored store
// can be lost together with its numbers. So the note is stored beside the data and beside the backup: one copy survives the loss
// of the disk, the other survives the next backup.
type numbersNote struct{ paths []string }

// noteBeside returns the note of a data directory and, if the path is not empty, of a backup.
func noteBeside(directory, backup string) numbersNote {
	n := numbersNote{[]string{filepath.Join(directory, "restored-numbers.json")}}
	if backup != "" {
		n.paths = append(n.paths, backup+".restored")
	}
	return n
}

// read returns the highest noted numbers of all copies.
func (n numbersNote) read() (store.Numbers, error) {
	all := store.Numbers{}
	for _, path := range n.paths {
		var noted store.Numbers
		if err := readNote(path, &noted); err != nil {
			return nil, fmt.Errorf("the numbers of earlier restores: %w: repair or remove the file; without it this restore may assign "+
				"numbers a second time", err)
		}
		all.Above(noted)
	}
	return all, nil
}

// write stores the numbers in all copies. The copy beside the backup may be on a read-only file system: then missing is its path.
func (n numbersNote) write(numbers store.Numbers) (missing string, err error) {
	if err := os.MkdirAll(filepath.Dir(n.paths[0]), 0o700); err != nil {
		return "", err
	}
	for i, path := range n.paths {
		err := writeNote(path, numbers)
		switch {
		case err != nil && i == 0:
			return "", fmt.Errorf("the numbers at which this restore continues could not be stored: %w", err)
		case err != nil:
			missing = path
		}
	}
	return missing, nil
}
