package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// owner is the owner of a file that the steps write.
type owner int

const (
	// ownerRoot: root:root, mode 0644.
	ownerRoot owner = iota
	// ownerService: root:sluice, mode 0640, as keys need.
	ownerService
	// ownerAccount: sluice:sluice, mode 0600, as the key file of the store needs.
	ownerAccount
	// ownerAdministrator: root:root, mode 0600.
	ownerAdministrator
)

// put writes a file, unless it has that content, owner and mode. It is replaced at once, so no service reads a part of it.
func (s *System) put(path, content string, of owner) (changed bool, err error) {
	user, group, mode := -1, -1, fs.FileMode(0o644)
	switch of {
	case ownerService:
		mode = 0o640
		_, group, err = s.Account()
	case ownerAccount:
		mode = 0o600
		user, group, err = s.Account()
	case ownerAdministrator:
		mode = 0o600
	}
	if err != nil {
		return false, err
	}
	at := s.path(path)
	if has(at, content, mode, group) {
		return false, nil
	}
	parents := fs.FileMode(0o755)
	if of == ownerAdministrator {
		parents = 0o700
	}
	if err := os.MkdirAll(filepath.Dir(at), parents); err != nil {
		return false, err
	}
	file, err := os.CreateTemp(filepath.Dir(at), "."+filepath.Base(at)+".*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it has another name after success
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Chown(user, group), file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, os.Rename(file.Name(), at)
}

// has reports whether a file is as put writes it; group -1: of any group.
func has(path, content string, mode fs.FileMode, group int) bool {
	state, err := os.Stat(path)
	if err != nil || state.Mode().Perm() != mode {
		return false
	}
	if of, known := state.Sys().(*syscall.Stat_t); known && group >= 0 && int(of.Gid) != group {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && bytes.Equal(text, []byte(content))
}

// flagsLine begins the line of an environment file that has the flags of a service.
const flagsLine = "FLAGS="

// flagsIn returns the flags in an environment file.
func flagsIn(text string) string {
	flags := ""
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, flagsLine); found {
			flags = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return flags
}

// withFlags replaces the flags in an environment file, and leaves its other lines.
func withFlags(text, flags string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, flagsLine) {
			kept.WriteString(line)
		}
	}
	if text := kept.String(); text != "" && !strings.HasSuffix(text, "\n") {
		kept.WriteString("\n")
	}
	return kept.String() + flagsLine + `"` + flags + "\"\n"
}

// withMembers replaces the peer addresses that a control plane joins.
func withMembers(flags string, peers []string) string {
	const flag = "--etcd-join"
	words := strings.Fields(flags)
	if i := slices.Index(words, flag); i >= 0 {
		words = slices.Delete(words, i, min(i+2, len(words)))
	}
	if len(peers) > 0 {
		words = append(words, flag, strings.Join(peers, ","))
	}
	return strings.Join(words, " ")
}

// read returns the content of a file; empty: there is none.
func (s *System) read(path string) (string, error) {
	text, err := os.ReadFile(s.path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// exists reports whether there is a file or directory.
func (s *System) exists(path string) bool {
	_, err := os.Lstat(s.path(path))
	return err == nil
}

// serviceMode is the mode of directories that only the account of the services may enter: those of local pools and of the store.
const serviceMode fs.FileMode = 0o700

// makeServiceDirectory makes a directory that belongs to the account of the services.
func (s *System) makeServiceDirectory(directory string) error {
	user, group, err := s.Account()
	if err != nil {
		return err
	}
	at := s.path(directory)
	return errors.Join(os.MkdirAll(at, 0o755), os.Chmod(at, serviceMode), os.Chown(at, user, group))
}

// ownedBy reports whether a directory has this owner and mode.
func ownedBy(directory string, user int, mode fs.FileMode) bool {
	state, err := os.Stat(directory)
	if err != nil || !state.IsDir() || state.Mode().Perm() != mode {
		return false
	}
	of, known := state.Sys().(*syscall.Stat_t)
	return known && int(of.Uid) == user
}
