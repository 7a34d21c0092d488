package node

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// path is a SCSI disk: a LUN as seen by one session.
type path struct {
	// directory of the SCSI device in sysfs.
	directory string
	// name of the block device, for example sda.
	name string
}

// flatSpace is added by Linux to a number in flat space addressing (SAM-5 §4.7.7.3).
const (
	flatSpace    = 0x4000
	plainNumbers = 256
)

// kernelLUN returns a LUN's number as Linux writes it.
func kernelLUN(lun int32) string {
	if lun >= plainNumbers {
		lun |= flatSpace
	}
	return strconv.Itoa(int(lun))
}

const pollInterval = 100 * time.Millisecond

// until polls until the condition holds, or the call's time is over. The kernel reports most of these changes only to udev, and a
// container does not receive its events.
func until(ctx context.Context, check func() (missing string, err error)) error {
	var last string
	for {
		missing, err := check()
		if last != "" && ctx.Err() != nil && (err != nil || missing != "") {
			missing, err = last, nil // this explains more than the timeout error
		}
		if err != nil || missing == "" {
			return err
		}
		last = missing
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s", last)
		case <-time.After(pollInterval):
		}
	}
}

// scan makes the kernel scan one LUN through all sessions, and no other.
func (s *Service) scan(a attachment.Attachment) error {
	sessions, err := s.sessions(a.IQN)
	if err != nil {
		return err
	}
	return s.host.Do(func() error {
		var problems []error
		for _, session := range loggedIn(sessions) {
			file := filepath.Join(s.sysfs, "class/scsi_host/host"+session.scsiHost, "scan")
			problems = append(problems, write(file, "- - "+kernelLUN(a.LUN)))
		}
		return errors.Join(problems...)
	})
}

// write writes to a file of sysfs. A missing file is no error, because its device is gone.
func write(file, content string) error {
	err := os.WriteFile(file, []byte(content), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// paths returns the present paths of a LUN.
func (s *Service) paths(a attachment.Attachment) (found []path, err error) {
	sessions, err := s.sessions(a.IQN)
	if err != nil {
		return nil, err
	}
	err = s.host.Do(func() error {
		for _, session := range sessions {
			directories, err := filepath.Glob(filepath.Join(session.directory, "target*/*:"+kernelLUN(a.LUN)))
			if err != nil {
				return err
			}
			for _, directory := range directories {
				blocks, err := filepath.Glob(filepath.Join(directory, "block/*"))
				if err != nil {
					return err
				}
				for _, block := range blocks {
					found = append(found, path{directory: directory, name: filepath.Base(block)})
				}
			}
		}
		return nil
	})
	return found, err
}

// awaitPaths waits for a path through each session.
func (s *Service) awaitPaths(ctx context.Context, a attachment.Attachment) (found []path, err error) {
	ctx, cancel := context.WithTimeout(ctx, appearBound)
	defer cancel()
	var scanned time.Time
	err = until(ctx, func() (string, error) {
		if time.Since(scanned) > scanAgain {
			if err := s.scan(a); err != nil {
				return "", err
			}
			scanned = time.Now()
		}
		sessions, err := s.sessions(a.IQN)
		if err != nil {
			return "", err
		}
		if found, err = s.paths(a); err != nil {
			return "", err
		}
		if want := len(loggedIn(sessions)); len(found) < want || want == 0 {
			return fmt.Sprintf("LUN %d of %s is seen by %d of %d sessions", a.LUN, a.IQN, len(found), want), nil
		}
		return "", nil
	})
	if len(found) > 0 {
		return found, nil // a path that fails now joins the map when it recovers
	}
	return nil, err
}

// scanAgain is the pause before the next scan, which may find a LUN that the gateway did not have yet.
const scanAgain = 2 * time.Second

// appearBound is the time to wait for all paths. A session that breaks meanwhile must not delay the others.
const appearBound = 40 * time.Second

// MismatchError reports a device that is not the volume.
type MismatchError struct{ device, found, want string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s and not the volume, %s: a stale device, or the wrong target; it is not touched", e.device, e.found, e.want)
}

// verify checks that each path leads to the volume, from the device's own identification. The kernel caches the identification
// from the time of discovery, so the device is asked again.
func (s *Service) verify(a attachment.Attachment, all []path) error {
	return s.host.Do(func() error {
		for _, p := range all {
			if err := write(filepath.Join(p.directory, "rescan"), "1"); err != nil {
				return fmt.Errorf("rescan %s: %w", p.name, err)
			}
			page, err := os.ReadFile(filepath.Join(p.directory, "vpd_pg83"))
			if err != nil {
				return fmt.Errorf("%s cannot be identified: %w", p.name, err)
			}
			if naa := naaOf(page); naa != a.NAA {
				return &MismatchError{p.name, "NAA " + naa, "NAA " + a.NAA}
			}
		}
		return nil
	})
}

// Fields of a designation descriptor (SPC-5 §7.7.6.1).
const (
	descriptorHeader   = 4
	typeMask, typeNAA  = 0x0f, 3
	associationMask    = 0x30 // 0: the logical unit
	pageLengthOffset   = 2
	designatorLengthAt = 3
)

// naaOf returns the NAA designator of the logical unit in the Device Identification VPD page, in hexadecimal digits.
func naaOf(page []byte) string {
	if len(page) < descriptorHeader {
		return ""
	}
	length := int(page[pageLengthOffset])<<8 | int(page[pageLengthOffset+1])
	rest := page[descriptorHeader:min(len(page), descriptorHeader+length)]
	for len(rest) >= descriptorHeader {
		size := int(rest[designatorLengthAt])
		if len(rest) < descriptorHeader+size {
			return ""
		}
		if rest[1]&typeMask == typeNAA && rest[1]&associationMask == 0 {
			return hex.EncodeToString(bytes.Clone(rest[descriptorHeader : descriptorHeader+size]))
		}
		rest = rest[descriptorHeader+size:]
	}
	return ""
}

// remove makes the kernel remove SCSI disks.
func (s *Service) remove(all []path) error {
	return s.host.Do(func() error {
		var problems []error
		for _, p := range all {
			problems = append(problems, write(filepath.Join(p.directory, "delete"), "1"))
		}
		return errors.Join(problems...)
	})
}
