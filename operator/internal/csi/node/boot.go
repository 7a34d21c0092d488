package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
)

// bootFile has an identifier that differs for each boot of the kernel.
const bootFile = "/proc/sys/kernel/random/boot_id"

func readBoot() (string, error) {
	text, err := os.ReadFile(bootFile)
	if err != nil {
		return "", fmt.Errorf("the machine's boot cannot be identified: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// outlived reports whether the machine has booted since a record was stored: nothing of the volume is in use any more. A record
// of a release that stored no boot counts as one of this boot.
func (s *Service) outlived(r *record) bool { return r.Boot != "" && r.Boot != s.boot }

// begin stores the record of a stage, once the remains of earlier boots are removed from its target. One lock covers both, so a
// concurrent stage of the same target never loses the sessions that this one makes.
func (s *Service) begin(ctx context.Context, want *record) error {
	s.logins.Lock()
	defer s.logins.Unlock()
	existing, err := s.state.get(want.Volume)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	targets := []string{want.IQN}
	if existing != nil && existing.IQN != want.IQN {
		targets = append(targets, existing.IQN)
	}
	var problems []error
	for _, iqn := range targets {
		problems = append(problems, s.clear(ctx, iqn))
	}
	if existing, err = s.state.get(want.Volume); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	problem := errors.Join(problems...)
	if existing != nil && s.outlived(existing) {
		return fmt.Errorf("remains of an earlier boot cannot be removed: %w", problem)
	}
	if problem != nil { // those of other volumes
		slog.WarnContext(ctx, "remains of an earlier boot", "problem", problem)
	}
	if err := expect(existing, want); err != nil {
		return err
	}
	// The record precedes all changes, so that unstaging finds everything that must be undone.
	want.Boot = s.boot
	if err := s.state.put(want); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// clear removes what earlier boots left of a target: sessions that the machine's own services made from node records, perhaps with
// other settings or to former portals; their disks and maps; the node records. Sessions and node records stay while a volume of the
// target is in use. The caller holds the lock of logins.
func (s *Service) clear(ctx context.Context, iqn string) error {
	known, err := s.state.all()
	inUse := err != nil // an unreadable record may be of this target
	var left []*record
	for _, r := range known {
		switch {
		case r.IQN != iqn:
		case s.outlived(r):
			left = append(left, r)
		default:
			inUse = true
		}
	}
	var problems []error
	var removed []string
	for _, r := range left {
		slog.InfoContext(ctx, "the machine has booted since a volume was staged: its remains are removed", "volume", r.Volume, "target", iqn)
		if err := s.detach(ctx, r); err != nil {
			problems = append(problems, fmt.Errorf("volume %s: %w", r.Volume, err))
			continue
		}
		removed = append(removed, r.Volume)
	}
	if len(left) > 0 && !inUse && len(problems) == 0 {
		if err := s.logout(ctx, iqn); err != nil {
			return err
		}
		s.portals.set(iqn, 0)
	}
	for _, volume := range removed {
		problems = append(problems, s.state.remove(volume))
	}
	return errors.Join(problems...)
}

// clearAll removes the remains of earlier boots from all targets: kubelet stages no volume again whose pod has left the node.
func (s *Service) clearAll(ctx context.Context) {
	known, _ := s.state.all() // an unreadable record is reported where its volume is used
	var targets []string
	for _, r := range known {
		if s.outlived(r) && !slices.Contains(targets, r.IQN) {
			targets = append(targets, r.IQN)
		}
	}
	for _, iqn := range targets {
		func() {
			ctx, cancel := context.WithTimeout(ctx, callBound)
			defer cancel()
			s.logins.Lock()
			defer s.logins.Unlock()
			if err := s.clear(ctx, iqn); err != nil {
				slog.WarnContext(ctx, "remains of an earlier boot: the next round tries again", "target", iqn, "problem", err)
			}
		}()
	}
}
