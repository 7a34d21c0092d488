package world

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// XFS mounts a new file system that shares blocks between files (reflink), of 512 MiB, in a folder. What it gives back takes it
// away again. An error where the machine cannot: no mkfs.xfs, no loop devices, not root.
func XFS(scratch string) (directory string, unmount func() error, err error) {
	image, directory := filepath.Join(scratch, "disk"), filepath.Join(scratch, "pool")
	if err := os.Mkdir(directory, 0o700); err != nil {
		return "", nil, err
	}
	run := func(command string, arguments ...string) error {
		if output, err := exec.Command(command, arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", command, strings.Join(arguments, " "), err, output)
		}
		return nil
	}
	for _, words := range []string{"truncate -s 512M " + image, "mkfs.xfs -q -m reflink=1 " + image, "mount -o loop " + image + " " + directory} {
		command := strings.Fields(words)
		if err := run(command[0], command[1:]...); err != nil {
			return "", nil, err
		}
	}
	return directory, func() error { return run("umount", directory) }, nil
}
