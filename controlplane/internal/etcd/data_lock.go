package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// lockFile is locked by the process that uses a data directory, and contains its pid.
	lockFile = "lock"
	// maxLockText bounds the part of a lock file that is read, in bytes: a pid in decimal and a line feed.
	maxLockText = 32
)

// DirectoryInUseError means that another process uses a data directory.
type DirectoryInUseError struct {
	Directory string
	// PID of that process in its own namespace; 0: unknown.
	PID int
}

func (e *DirectoryInUseError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop that process first, or give this one another --data-dir", e.Directory, by)
}

// lockDirectory locks a data directory for this process. It never waits. The kernel releases the lock when the process ends.
// Errors: DirectoryInUseError.
func lockDirectory(directory string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &DirectoryInUseError{directory, pidIn(file)}
		}
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	if err := databaseUnused(directory); err != nil {
		_ = file.Close()
		return nil, err
	}
	// The pid is for users. On a full file system it is missing, but the lock is still effective.
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return file, nil
}

func pidIn(file io.Reader) int {
	text, err := io.ReadAll(io.LimitReader(file, maxLockText))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// databaseUnused detects a process of a release without the lock file. It holds the lock of etcd's own database, for which etcd
// would wait without end.
func databaseUnused(directory string) error {
	file, err := os.OpenFile(filepath.Join(directory, Directory, "member", "snap", "db"), os.O_RDWR|syscall.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // releases the lock, too
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return &DirectoryInUseError{Directory: directory}
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}
