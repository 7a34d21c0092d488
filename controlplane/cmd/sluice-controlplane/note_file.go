package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// readNote reads a small JSON file that this program wrote earlier. If the file is missing, note is unchanged and there is no
// error. Other errors name the path.
func readNote(path string, note any) error {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(text, note); err != nil {
		return &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return nil
}

// writeNote replaces a note in an existing directory. After a power failure the file has its old or its new content.
func writeNote(path string, note any) error {
	text, err := json.MarshalIndent(note, "", "  ")
	if err != nil {
		return err
	}
	directory := filepath.Dir(path)
	file, err := os.CreateTemp(directory, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err = file.Write(append(text, '\n')); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	parent, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
