package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// NodeExpandVolume implements csi.NodeServer: it enlarges paths, map and file system to the present size of the volume.
func (s *Service) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetVolumePath() == "" {
		return nil, invalid("volume id or volume path is missing")
	}
	ctx, staged, done, err := s.work(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	if staged == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s is not staged", r.GetVolumeId())
	}
	size, err := s.growFileSystem(ctx, staged, r.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, internal(err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

func (s *Service) growFileSystem(ctx context.Context, staged *record, required int64) (int64, error) {
	if err := s.rescanned(ctx, staged, required); err != nil {
		return 0, err
	}
	found, err := s.find(staged.Attachment)
	if err != nil || found == nil {
		return 0, errors.Join(err, fmt.Errorf("volume %s has no device", staged.Volume))
	}
	if _, err := s.host.Run(ctx, host.New("multipathd", "resize", "map", found.name)); err != nil {
		return 0, err
	}
	if err := until(ctx, func() (string, error) {
		if found, err = s.find(staged.Attachment); err != nil {
			return "", err
		}
		if found == nil || found.bytes < required {
			return fmt.Sprintf("the map has not grown to %d bytes", required), nil
		}
		return "", nil
	}); err != nil {
		return 0, err
	}
	if staged.Block {
		return found.bytes, nil
	}
	return found.bytes, s.grow(ctx, found.node(), staged.Staging, staged.FileSystem)
}

// rescanned rescans each path until all responding paths have grown.
func (s *Service) rescanned(ctx context.Context, staged *record, required int64) error {
	return until(ctx, func() (missing string, err error) {
		paths, err := s.paths(staged.Attachment)
		if err != nil {
			return "", err
		}
		if len(paths) == 0 {
			return "volume " + staged.Volume + " has no path", nil
		}
		err = s.host.Do(func() error {
			var problems []error
			for _, p := range paths {
				if text(p.directory, "state") != "running" {
					continue
				}
				problems = append(problems, write(filepath.Join(p.directory, "rescan"), "1"))
				sectors, _ := strconv.ParseInt(text(s.sysfs, "block", p.name, "size"), 10, 64) // 0 if it is gone
				if sectors*sectorSize < required {
					missing = fmt.Sprintf("%s has %d of %d bytes", p.name, sectors*sectorSize, required)
				}
			}
			return errors.Join(problems...)
		})
		return missing, err
	})
}
