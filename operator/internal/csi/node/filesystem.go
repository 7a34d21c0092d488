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
	// statusBlank is how blkid says that it found no signature.
	statusBlank = 2
	// looked is how much of the beginning of a device has to be zeros before it counts as blank.
	looked = 4 << 20
	chunk  = 1 << 20
)

// contentOf says which file system is on a device; empty: it is blank. blkid answers the same where a device cannot be read,
// so blank is only what was read and is nothing but zeros.
func (s *Service) contentOf(ctx context.Context, device string) (string, error) {
	said, err := s.host.Run(ctx, host.New("blkid", "-p", "-o", "export", device))
	if err != nil && host.Status(err) != statusBlank {
		return "", err
	}
	for line := range strings.Lines(said) {
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
	for read := 0; read < looked; {
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

// format makes a file system where there is none yet. A device that has another one is left alone.
func (s *Service) format(ctx context.Context, device, kind string, readOnly bool) error {
	is, err := s.contentOf(ctx, device)
	switch {
	case err != nil:
		return err
	case is == kind:
		return nil
	case is != "":
		return fmt.Errorf("%s holds %s, and %s is asked for; it is not formatted", device, is, kind)
	case readOnly:
		return fmt.Errorf("%s is blank, and cannot be formatted: it is read-only", device)
	}
	command := host.New("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", device) // it is all zeros: nothing to discard
	if kind == xfs {
		command = host.New("mkfs.xfs", "-q", "-K", device)
	}
	_, err = s.host.Run(ctx, command)
	return err
}

// mountOptions that a file system needs: a copy of an xfs has its source's UUID, and both may be on one node.
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

// grow makes a mounted file system as large as its device; one that is already stays as it is.
func (s *Service) grow(ctx context.Context, device, point, kind string) error {
	command := host.New("resize2fs", device)
	if kind == xfs {
		command = host.New("xfs_growfs", point)
	}
	_, err := s.host.Run(ctx, command)
	return err
}
