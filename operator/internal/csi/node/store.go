package node

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// record is a volume whose staging was begun.
type record struct {
	Volume string `json:"volume"`
	attachment.Attachment
	// Staging is the directory from kubelet; for a file system the mount point.
	Staging string `json:"staging"`
	Block   bool   `json:"block"`
	// FileSystem on it; empty for a block volume.
	FileSystem string `json:"fileSystem,omitempty"`
	// Boot identifies the machine's boot in which it was staged.
	Boot string `json:"boot,omitempty"`
	// Leaving: its unstaging has begun. No login is made for it any more.
	Leaving bool `json:"leaving,omitempty"`
}

// store has a file for each record, and one for the node's key. CHAP secrets are not in it: iscsid stores them, readable by root
// only.
type store struct{ directory string }

const (
	stateMode = 0o700
	fileMode  = 0o600
	suffix    = ".json"
)

func openStore(directory string) (*store, error) {
	if err := os.MkdirAll(directory, stateMode); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	return &store{directory}, nil
}

// path returns the file of a volume. The id may contain any character.
func (s *store) path(volume string) string {
	return filepath.Join(s.directory, hex.EncodeToString([]byte(volume))+suffix)
}

// put stores a record durably.
func (s *store) put(r *record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return s.write(s.path(r.Volume), text)
}

// write stores a file durably and atomically.
func (s *store) write(final string, text []byte) error {
	file, err := os.OpenFile(final+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(final+".new", final)
	}
	if err != nil {
		return err
	}
	return s.sync()
}

func (s *store) sync() error {
	directory, err := os.Open(s.directory)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// get returns a volume's record; nil: there is none.
func (s *store) get(volume string) (*record, error) { return read(s.path(volume)) }

func read(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	err = json.Unmarshal(text, r)
	if err == nil && r.Volume == "" {
		err = errors.New("it names no volume")
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, so what is staged of this volume is not known: unmount it and remove its map "+
			"(`multipath -f`) on the node, then remove the file: %w", path, err)
	}
	return r, nil
}

// all returns the readable records. The error names the others.
func (s *store) all() ([]*record, error) {
	names, err := filepath.Glob(filepath.Join(s.directory, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var records []*record
	var problems []error
	for _, name := range names {
		r, err := read(name)
		problems = append(problems, err)
		if r != nil { // otherwise it has just been removed
			records = append(records, r)
		}
	}
	return records, errors.Join(problems...)
}

// remove deletes the record of a volume.
func (s *store) remove(volume string) error {
	if err := os.Remove(s.path(volume)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.sync()
}
