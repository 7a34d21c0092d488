package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice.dev/sluice/operator/internal/csi/host"
)

const (
	ext4 = "ext4"
	xfs  = "xfs"
	// statusBlank is the exit status of blkid if it found no signature.
	statusBlank = 2
	// probeSize is the size of the beginning of a device, in bytes, that must be zeros before the device counts as blank.
	probeSize = 4 << 20
	chunk     = 1 << 20
)

// contentOf returns the type of the file system on a device; empty: it is blank. blkid exits with the same status if it cannot
// read the device. Therefore a device is blank only if its beginning was read and is all zeros.
func (s *Service) contentOf(ctx context.Context, device string) (string, error) {
	output, err := s.host.Run(ctx, host.New("blkid", "-p", "-o", "export", device))
	if err != nil && host.Status(err) != statusBlank {
		return "", err
	}
	for line := range strings.Lines(output) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "TYPE="); ok && err == nil {
			return value, nil
		}
	}
	if err == nil {
		return "", fmt.Errorf("%s holds a partition table or something else that is no file system; it is not formatted", device)
	}
	return "", s.host.Do(func() error { return zeros(device) })
}

func zeros(device string) error {
	file, err := os.Open(device)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	part := make([]byte, chunk)
	for read := 0; read < probeSize; {
		n, err := file.Read(part)
		for _, b := range part[:n] {
			if b != 0 {
				return fmt.Errorf("%s holds data that is no file system; it is not formatted", device)
			}
		}
		read += n
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read, so it is not formatted: %w", device, err)
		}
	}
	return nil
}

// format makes a file system if there is none. A device with another file system is not changed.
func (s *Service) format(ctx context.Context, device, kind string, readOnly bool) error {
	kindFound, err := s.contentOf(ctx, device)
	switch {
	case err != nil:
		return err
	case kindFound == kind:
		return nil
	case kindFound != "":
		return fmt.Errorf("%s holds %s, and %s is asked for; it is not formatted", device, kindFound, kind)
	case readOnly:
		return fmt.Errorf("%s is blank, and cannot be formatted: it is read-only", device)
	}
	command := host.New("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", device) // the device is all zeros: nothing to discard
	if kind == xfs {
		command = host.New("mkfs.xfs", "-q", "-K", device)
	}
	_, err = s.host.Run(ctx, command)
	return err
}

// mountOptions returns the options that a file system needs: a copy of an XFS has its source's UUID, and both may be mounted on
// one node.
func mountOptions(kind string, flags []string, readOnly bool) []string {
	options := append([]string{}, flags...)
	if kind == xfs {
		options = append(options, "nouuid")
	}
	if readOnly {
		options = append(options, "ro")
	}
	return options
}

func (s *Service) mountDevice(ctx context.Context, device, point, kind string, options []string) error {
	arguments := []string{"-t", kind}
	if len(options) > 0 {
		arguments = append(arguments, "-o", strings.Join(options, ","))
	}
	_, err := s.host.Run(ctx, host.New("mount", append(arguments, device, point)...))
	return err
}

// grow enlarges a mounted file system to the size of its device. It is idempotent.
func (s *Service) grow(ctx context.Context, device, point, kind string) error {
	command := host.New("resize2fs", device)
	if kind == xfs {
		command = host.New("xfs_growfs", point)
	}
	_, err := s.host.Run(ctx, command)
	return err
}
