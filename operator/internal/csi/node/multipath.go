package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/host"
)

// multipathMap is a volume's device: the dm-multipath map of all its paths.
type multipathMap struct {
	// device is for example dm-3; name is the name in device-mapper.
	device, name string
	// number is major:minor.
	number string
	// paths are the disks below it; running counts those that the kernel reports as running, away those whose session iscsid
	// restores.
	paths         []string
	running, away int
	bytes         int64
}

func (m *multipathMap) node() string { return "/dev/" + m.device }

const sectorSize = 512

// find returns the map of a volume; nil: there is none.
func (s *Service) find(a attachment.Attachment) (found *multipathMap, err error) {
	err = s.host.Do(func() error {
		names, err := filepath.Glob(filepath.Join(s.sysfs, "block/dm-*"))
		for _, directory := range names {
			if !isMapOf(text(directory, "dm/uuid"), a) {
				continue
			}
			sectors, _ := strconv.ParseInt(text(directory, "size"), 10, 64) // gone: 0
			found = &multipathMap{device: filepath.Base(directory), name: text(directory, "dm/name"), number: text(directory, "dev"),
				bytes: sectors * sectorSize}
			slaves, err := filepath.Glob(filepath.Join(directory, "slaves/*"))
			if err != nil {
				return err
			}
			for _, slave := range slaves {
				name := filepath.Base(slave)
				found.paths = append(found.paths, name)
				switch text(s.sysfs, "block", name, "device/state") {
				case "running":
					found.running++
				case "blocked", "transport-offline":
					found.away++
				}
			}
		}
		return err
	})
	return found, err
}

// isMapOf reports whether a map with this UUID belongs to the volume. The machine's udev rules select the designator for the
// WWID, the NAA one (3<digits>) or the SCSI name string (8naa.<digits>); both contain the same digits.
func isMapOf(uuid string, a attachment.Attachment) bool {
	wwid, ok := strings.CutPrefix(strings.ToLower(uuid), "mpath-")
	return ok && (wwid == "3"+a.NAA || wwid == "8naa."+a.NAA)
}

// Bounds of the wait for a map. multipathd is notified again meanwhile, because it ignores a path that it could not open at that
// time.
const (
	joinBound = 10 * time.Second
	joinTries = 4
)

// assemble waits for the map of verified paths.
func (s *Service) assemble(ctx context.Context, a attachment.Attachment, all []path) (found *multipathMap, err error) {
	if err := s.known(ctx, all); err != nil {
		return nil, err
	}
	var problems []string
	for range joinTries {
		if found, err = s.find(a); err != nil {
			return nil, err
		}
		problems = s.notifyMultipathd(ctx, found, all)
		if found, err = s.joined(ctx, a, all); err != nil {
			return nil, err
		}
		if found != nil && found.bytes > 0 {
			return found, nil // a path that has not joined does so when it recovers
		}
	}
	return nil, fmt.Errorf("multipathd makes no map of NAA %s: does it run, and does /etc/multipath.conf let it have devices of "+
		"vendor SLUICE? %s", a.NAA, strings.Join(problems, "; "))
}

// known waits until udev knows the disks: multipath reads their WWID from udev, and gets another one if it asks too early.
func (s *Service) known(ctx context.Context, all []path) error {
	ctx, cancel := context.WithTimeout(ctx, appearBound)
	defer cancel()
	return until(ctx, func() (missing string, err error) {
		err = s.host.Do(func() error {
			for _, p := range all {
				record := filepath.Join(s.udevData, "b"+text(s.sysfs, "block", p.name, "dev"))
				if _, err := os.Stat(record); err != nil {
					missing = "udev does not know " + p.name + " yet; does it run?"
				}
			}
			return nil
		})
		return missing, err
	})
}

// notifyMultipathd notifies multipathd of paths that are not in the map, and returns its answers: otherwise multipathd may ignore
// them (`find_multipaths`), or not have seen them yet.
func (s *Service) notifyMultipathd(ctx context.Context, have *multipathMap, all []path) (problems []string) {
	run := func(command host.Command) {
		out, err := s.host.Run(ctx, command)
		if err != nil {
			problems = append(problems, err.Error())
		} else if out = strings.TrimSpace(out); out != "ok" && out != "" {
			problems = append(problems, command.String()+": "+out)
		}
	}
	if have == nil {
		run(host.New("multipath", "-a", "/dev/"+all[0].name))
	}
	for _, p := range all {
		if have == nil || !slices.Contains(have.paths, p.name) {
			run(host.New("multipathd", "add", "path", p.name))
		}
	}
	return problems
}

// joined waits up to joinBound until all paths have joined the map, and returns the map.
func (s *Service) joined(ctx context.Context, a attachment.Attachment, all []path) (found *multipathMap, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinBound)
	defer cancel()
	_ = until(ctx, func() (string, error) {
		if found, err = s.find(a); err != nil || found == nil {
			return "no map", err
		}
		for _, p := range all {
			if !slices.Contains(found.paths, p.name) {
				return "path " + p.name, nil
			}
		}
		return "", nil
	})
	return found, err
}

// returnBound is the time for which a path may return, from the settings that `sluicectl host-config` gives to hosts.
const returnBound = time.Minute

// returned waits for a path if all paths of a map are away. Otherwise data that pods have written and the machine has not flushed
// would be lost for a short outage. If sessions have ended or disks were removed, no path returns.
func (s *Service) returned(ctx context.Context, a attachment.Attachment, found *multipathMap) (_ *multipathMap, err error) {
	if found == nil || found.running > 0 || found.away == 0 {
		return found, nil
	}
	slog.WarnContext(ctx, "no path is left just now: one is waited for, to write what is not written", "map", found.name)
	ctx, cancel := context.WithTimeout(ctx, returnBound)
	defer cancel()
	_ = until(ctx, func() (string, error) { // a timeout shows in found
		if found, err = s.find(a); err != nil || found == nil || found.running > 0 || found.away == 0 {
			return "", err
		}
		return "a path", nil
	})
	return found, err
}

// unqueue makes requests that wait for a path fail if there is none left: otherwise unmounting would wait without end.
func (s *Service) unqueue(ctx context.Context, found *multipathMap) {
	if found == nil || found.running > 0 {
		return
	}
	slog.WarnContext(ctx, "no path is left: what was not written is lost", "map", found.name)
	if _, err := s.host.Run(ctx, host.New("multipathd", "disablequeueing", "map", found.name)); err != nil {
		slog.WarnContext(ctx, "multipathd", "problem", err)
	}
	if _, err := s.host.Run(ctx, host.New("dmsetup", "message", found.name, "0", "fail_if_no_path")); err != nil {
		slog.WarnContext(ctx, "dmsetup", "problem", err)
	}
}

// unmap removes multipath maps of these disks that are not open: multipathd may be configured to map any disk, even one that is
// not the volume. The map of a volume that is staged here stays.
func (s *Service) unmap(ctx context.Context, all []path) error {
	staged, err := s.state.all()
	if err != nil {
		slog.WarnContext(ctx, "maps of others are kept", "problem", err)
		return nil
	}
	var names []string
	err = s.host.Do(func() error {
		for _, p := range all {
			holders, err := filepath.Glob(filepath.Join(s.sysfs, "block", p.name, "holders/dm-*"))
			if err != nil {
				return err
			}
			for _, holder := range holders {
				directory := filepath.Join(s.sysfs, "block", filepath.Base(holder))
				uuid, name := text(directory, "dm/uuid"), text(directory, "dm/name")
				isOf := func(r *record) bool { return isMapOf(uuid, r.Attachment) }
				if strings.HasPrefix(uuid, "mpath-") && !slices.ContainsFunc(staged, isOf) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	for _, name := range names {
		if _, problem := s.host.Run(ctx, host.New("multipath", "-f", name)); problem != nil {
			slog.WarnContext(ctx, "a map that is no volume's", "map", name, "problem", problem) // forget reports the holder
		}
	}
	return err
}

// flush writes the map's remaining data and removes the map. It tries again while the map is open, because udev opens it for a
// moment.
func (s *Service) flush(ctx context.Context, a attachment.Attachment) error {
	return until(ctx, func() (string, error) {
		found, err := s.find(a)
		if err != nil || found == nil {
			return "", err
		}
		if found.running > 0 {
			if _, err := s.host.Run(ctx, host.New("blockdev", "--flushbufs", found.node())); err != nil {
				return "", err
			}
		}
		if _, err := s.host.Run(ctx, host.New("multipath", "-f", found.name)); err != nil {
			return err.Error(), nil
		}
		if found, err = s.find(a); err != nil || found == nil {
			return "", err
		}
		return "map " + found.name + " is still there", nil
	})
}
