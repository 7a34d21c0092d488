package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// mount is a line of mountinfo (proc(5)).
type mount struct {
	number string // major:minor
	root   string
	point  string
}

const (
	fieldNumber, fieldRoot, fieldPoint = 2, 3, 4
	leastFields                        = 6
)

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func parseMounts(table string) []mount {
	var all []mount
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < leastFields {
			continue
		}
		all = append(all, mount{fields[fieldNumber], unescape.Replace(fields[fieldRoot]), unescape.Replace(fields[fieldPoint])})
	}
	return all
}

// mounts returns the mount table, and the points as they appear in it.
func (s *Service) mounts(points ...string) (all []mount, shown []string, err error) {
	err = s.host.Do(func() error {
		for _, point := range points {
			real, err := resolved(point)
			if err != nil {
				return err
			}
			shown = append(shown, real)
		}
		table, err := os.ReadFile(s.mountTable)
		all = parseMounts(string(table))
		return err
	})
	return all, shown, err
}

// resolved returns a point as the kernel shows it: kubelet's directory may be behind a symbolic link. The point itself is not
// accessed: it need not exist, and a mounted file system may not respond.
func resolved(point string) (string, error) {
	point = filepath.Clean(point)
	parent, err := filepath.EvalSymlinks(filepath.Dir(point))
	if errors.Is(err, os.ErrNotExist) { // then nothing is mounted there
		return point, nil
	}
	return filepath.Join(parent, filepath.Base(point)), err
}

// mountedAt returns the topmost mount at a path; nil: none.
func (s *Service) mountedAt(point string) (*mount, error) {
	all, shown, err := s.mounts(point)
	if err != nil {
		return nil, err
	}
	var top *mount
	for i := range all {
		if all[i].point == shown[0] {
			top = &all[i]
		}
	}
	return top, nil
}

// maxMounts bounds the stacked mounts that are removed.
const maxMounts = 16

// unmount removes all mounts at a path.
func (s *Service) unmount(ctx context.Context, point string) error {
	for range maxMounts {
		at, err := s.mountedAt(point)
		if err != nil || at == nil {
			return err
		}
		if _, err := s.host.Run(ctx, host.New("umount", point)); err != nil {
			return err
		}
	}
	return errors.New("something is mounted at " + point + " again and again")
}

const directoryMode = 0o750

// makePoint creates a mount point: a directory, or a file for a device.
func (s *Service) makePoint(point string, block bool) error {
	return s.host.Do(func() error {
		if !block {
			return os.MkdirAll(point, directoryMode)
		}
		if err := os.MkdirAll(filepath.Dir(point), directoryMode); err != nil {
			return err
		}
		file, err := os.OpenFile(point, os.O_CREATE|os.O_RDONLY, fileMode)
		if err != nil {
			return err
		}
		return file.Close()
	})
}

// removePoint removes such a mount point. It never removes one with content, which does not belong to the plugin.
func (s *Service) removePoint(point string) error {
	return s.host.Do(func() error {
		err := os.Remove(point)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
}

// usage returns the statistics of a mounted file system.
func (s *Service) usage(point string) (of unix.Statfs_t, err error) {
	err = s.host.Do(func() error { return unix.Statfs(point, &of) })
	return of, err
}
