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

// FileSystem is a mounted file system, in a file unless it is a tmpfs.
type FileSystem struct {
	// Directory at which it is mounted.
	Directory string
	image     string
}

// Small makes a file system of a kind, tmpfs, ext4 or xfs, in a folder. It is small enough to be filled. It fails if the machine
// does not support it: no program to make it, no loop devices, not root.
func Small(kind, scratch string) (*FileSystem, error) {
	f := &FileSystem{Directory: filepath.Join(scratch, "pool"), image: filepath.Join(scratch, "disk")}
	if err := os.Mkdir(f.Directory, 0o700); err != nil {
		return nil, err
	}
	switch kind {
	case "tmpfs":
		return f, command("mount", "-t", "tmpfs", "-o", "size=24M,mode=700", "tmpfs", f.Directory)
	case "ext4": // without blocks reserved for root
		if err := errors.Join(command("truncate", "-s", "64M", f.image), command("mkfs.ext4", "-q", "-m", "0", f.image)); err != nil {
			return nil, err
		}
	default: // xfs: no smaller one is possible
		if err := errors.Join(command("truncate", "-s", "300M", f.image), command("mkfs.xfs", "-q", f.image)); err != nil {
			return nil, err
		}
	}
	return f, f.Mount()
}

// fillSizes are the sizes of writes that fill a file system, in bytes.
var fillSizes = []int{1 << 20, 4096, 512}

// Fill fills the file system to the last block, with the file "fill".
func (f *FileSystem) Fill() error {
	file, err := os.OpenFile(filepath.Join(f.Directory, "fill"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, size := range fillSizes {
		block := make([]byte, size)
		for err == nil {
			if _, err = file.Write(block); err == nil {
				err = file.Sync() // only then are the blocks allocated
			}
		}
		if !errors.Is(err, unix.ENOSPC) {
			return errors.Join(err, file.Close())
		}
		err = nil
	}
	return file.Close()
}

// XFS makes a file system of 512 MiB that shares blocks between files (reflink), in a folder. It fails if the machine does not support it: no mkfs.xfs, no loop devices, not root.
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
