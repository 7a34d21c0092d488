package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// NodeUnstageVolume implements csi.NodeServer. It uses the record and the kernel's state, and does not depend on whether the
// device still responds: everything must be removed, especially if the device is gone.
func (s *Service) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetStagingTargetPath() == "" {
		return nil, invalid("volume id or staging target path is missing")
	}
	ctx, staged, done, err := s.work(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	if staged == nil {
		return &csi.NodeUnstageVolumeResponse{}, internalOr(s.unmount(ctx, r.GetStagingTargetPath()))
	}
	staged.Leaving = true
	if err := s.state.put(staged); err != nil {
		return nil, status.Errorf(codes.Internal, "state: %s", err)
	}
	if err := s.detach(ctx, staged); err != nil {
		return nil, internal(err)
	}
	return &csi.NodeUnstageVolumeResponse{}, internalOr(s.detachVolume(ctx, staged))
}

func internalOr(err error) error {
	if err == nil {
		return nil
	}
	return internal(err)
}

// detach undoes attach and mount except for the sessions, as far as they got.
func (s *Service) detach(ctx context.Context, staged *record) error {
	found, err := s.find(staged.Attachment)
	if err != nil {
		return err
	}
	if found, err = s.returned(ctx, staged.Attachment, found); err != nil {
		return err
	}
	s.unqueue(ctx, found)
	if !staged.Block {
		if err := s.unmount(ctx, staged.Staging); err != nil {
			return err
		}
	}
	paths, err := s.paths(staged.Attachment)
	if err != nil {
		return err
	}
	if found != nil { // includes disks whose session has ended
		for _, name := range found.paths {
			if !slices.ContainsFunc(paths, func(p path) bool { return p.name == name }) {
				paths = append(paths, path{directory: filepath.Join(s.sysfs, "block", name, "device"), name: name})
			}
		}
	}
	if err := s.flush(ctx, staged.Attachment); err != nil {
		return err
	}
	if err := s.forget(ctx, paths); err != nil {
		return err
	}
	// multipathd may have made the map again in between. Without paths it cannot do so again.
	return s.flush(ctx, staged.Attachment)
}

// forget removes unused disks, and their entries in multipathd.
func (s *Service) forget(ctx context.Context, all []path) error {
	if err := s.unmap(ctx, all); err != nil {
		return err
	}
	err := s.host.Do(func() error {
		for _, p := range all {
			holders, err := os.ReadDir(filepath.Join(s.sysfs, "block", p.name, "holders"))
			if err == nil && len(holders) > 0 {
				return fmt.Errorf("%s is held by %s", p.name, holders[0].Name())
			}
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	// This is only cleanup: the file of known WWIDs would grow with every volume.
	_, _ = s.host.Run(ctx, host.New("multipath", "-w", "/dev/"+all[0].name))
	if err := s.remove(all); err != nil {
		return err
	}
	return until(ctx, func() (missing string, err error) {
		err = s.host.Do(func() error {
			for _, p := range all {
				if _, err := os.Stat(filepath.Join(s.sysfs, "block", p.name)); err == nil {
					missing = p.name + " is still there"
				}
			}
			return nil
		})
		return missing, err
	})
}
