package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem is a mounted XFS of 512 MiB in a file. It shares blocks between files (reflink).
type FileSystem struct {
	// Directory at which it is mounted.
	Directory string
	image     string
}

// XFS makes a file system in a folder. It fails if the machine does not support it: no mkfs.xfs, no loop devices, not root.
func XFS(scratch string) (*FileSystem, error) {
	f := &FileSystem{Directory: filepath.Join(scratch, "pool"), image: filepath.Join(scratch, "disk")}
	if err := os.Mkdir(f.Directory, 0o700); err != nil {
		return nil, err
	}
	for _, words := range [][]string{{"truncate", "-s", "512M", f.image}, {"mkfs.xfs", "-q", "-m", "reflink=1", f.image}} {
		if err := command(words...); err != nil {
			return nil, err
		}
	}
	return f, f.Mount()
}

func command(words ...string) error {
	if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, output)
	}
	return nil
}

// Mount mounts it again after Unmount.
func (f *FileSystem) Mount() error { return command("mount", "-o", "loop", f.image, f.Directory) }

// ShareMounts propagates later mounts and unmounts to node processes that start after this call. Call Isolate first.
func ShareMounts() error { return command("mount", "--make-rshared", "/") }

// Unmount unmounts it.
func (f *FileSystem) Unmount() error { return command("umount", f.Directory) }

// The kernel's XFS_IOC_GOINGDOWN, and XFS_FSOP_GOING_FLAGS_NOLOGFLUSH (fs/xfs/libxfs/xfs_fs.h).
const (
	goingDown  = 0x8004587d
	noLogFlush = 2
)

// CutPower: from now on nothing reaches the disk, neither the page cache nor the journal's own buffers. Users of the file system
// get errors.
func (f *FileSystem) CutPower() error {
	directory, err := os.Open(f.Directory)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetPointerInt(int(directory.Fd()), goingDown, noLogFlush), directory.Close())
}

// PowerOn mounts the file system with its journal, as the power cut left it. No process may have a file of it open.
func (f *FileSystem) PowerOn() error {
	if err := f.Unmount(); err != nil {
		return err
	}
	return f.Mount()
}
