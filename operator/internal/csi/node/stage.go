package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

func invalid(format string, words ...any) error {
	return status.Errorf(codes.InvalidArgument, format, words...)
}

// requestedRecord reads the requested record from a request.
func requestedRecord(r *csi.NodeStageVolumeRequest) (*record, attachment.CHAP, error) {
	capability := r.GetVolumeCapability()
	switch {
	case r.GetVolumeId() == "":
		return nil, attachment.CHAP{}, invalid("volume id is missing")
	case r.GetStagingTargetPath() == "":
		return nil, attachment.CHAP{}, invalid("staging target path is missing")
	case capability == nil:
		return nil, attachment.CHAP{}, invalid("volume capability is missing")
	}
	a, err := attachment.Read(r.GetPublishContext())
	if err != nil {
		return nil, attachment.CHAP{}, invalid("%s", err)
	}
	chap, err := attachment.ReadCHAP(r.GetSecrets())
	if err != nil {
		return nil, chap, invalid("%s", err)
	}
	kind := capability.GetMount().GetFsType()
	switch {
	case capability.GetBlock() != nil:
		kind = ""
	case kind == "":
		kind = ext4
	case kind != ext4 && kind != xfs:
		return nil, chap, invalid("file system %q is not possible: ext4 and xfs are", kind)
	}
	return &record{Volume: r.GetVolumeId(), Attachment: a, Staging: r.GetStagingTargetPath(),
		Block: capability.GetBlock() != nil, FileSystem: kind}, chap, nil
}

// NodeStageVolume implements csi.NodeServer.
func (s *Service) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	want, chap, err := requestedRecord(r)
	if err != nil {
		return nil, err
	}
	ctx, _, done, err := s.work(ctx, want.Volume)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.begin(ctx, want); status.Code(err) == codes.AlreadyExists {
		return nil, err
	} else if err != nil {
		return nil, uncertainCode(err)
	}
	var found *multipathMap
	if chap, err = s.credentials(want.Attachment, chap); err == nil {
		found, err = s.attach(ctx, want.Attachment, chap)
	}
	if err == nil && !want.Block {
		mode := r.GetVolumeCapability().GetAccessMode().GetMode()
		readOnly := slices.Contains(readerModes, mode)
		err = s.mount(ctx, want, found, r.GetVolumeCapability().GetMount().GetMountFlags(), readOnly)
	}
	if err == nil {
		s.requestCheck(want.IQN)
		return &csi.NodeStageVolumeResponse{}, nil
	}
	return nil, uncertainCode(err)
}

// uncertainCode returns an error after which kubelet unstages, because something may be staged. kubelet unstages only after these
// codes; after any other one it assumes that nothing is staged, and sessions, map and record would remain. Nothing is undone
// here, because a repeated stage finds the volume in use.
func uncertainCode(err error) error {
	err = internal(err)
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return err
	}
	return status.Error(codes.Unavailable, status.Convert(err).Message())
}

var readerModes = []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY}

func internal(err error) error {
	if code := status.Code(err); code != codes.Unknown {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

// expect refuses to stage a volume in another way than it is staged. If the volume is now reached through another target, because
// it was unpublished while the node was away, the remains of the old one must be removed first, with a code after which kubelet
// unstages.
func expect(existing, want *record) error {
	switch {
	case existing == nil:
		return nil
	case existing.Staging != want.Staging || existing.Block != want.Block || existing.FileSystem != want.FileSystem:
		return status.Errorf(codes.AlreadyExists, "volume %s is staged at %s as %q", want.Volume, existing.Staging, existing.FileSystem)
	case existing.IQN != want.IQN || existing.LUN != want.LUN || existing.NAA != want.NAA:
		return status.Errorf(codes.Unavailable, "volume %s is staged as LUN %d of %s and now published as LUN %d of %s: "+
			"unstage it first", want.Volume, existing.LUN, existing.IQN, want.LUN, want.IQN)
	}
	return nil
}

// attach makes the volume's device: sessions, verified paths, and their map. Paths to another device are removed.
func (s *Service) attach(ctx context.Context, a attachment.Attachment, chap attachment.CHAP) (*multipathMap, error) {
	if err := s.connect(ctx, a, chap); err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		found, err := s.awaitPaths(ctx, a)
		if err != nil {
			return nil, err
		}
		err = s.verify(a, found)
		var wrong *MismatchError
		if !errors.As(err, &wrong) {
			if err != nil {
				return nil, err
			}
			return s.assemble(ctx, a, found)
		}
		// This device is a remnant of another volume under this LUN number. It is not in use, or the kernel would refuse to
		// remove it.
		slog.WarnContext(ctx, "wrong device", "problem", err)
		if problem := s.forget(ctx, found); problem != nil || again {
			return nil, errors.Join(err, problem)
		}
	}
}

// mount mounts the file system at the staging path, makes it if there is none, and enlarges it to the size of the volume: the
// file system of a copied volume may be smaller.
func (s *Service) mount(ctx context.Context, want *record, found *multipathMap, flags []string, readOnly bool) error {
	at, err := s.mountedAt(want.Staging)
	if err != nil {
		return err
	}
	if at != nil && at.number == found.number {
		return nil
	}
	if at != nil {
		return status.Errorf(codes.Internal, "at %s device %s is mounted, and not the volume's %s", want.Staging, at.number, found.number)
	}
	if err := s.format(ctx, found.node(), want.FileSystem, readOnly); err != nil {
		return err
	}
	if err := s.makePoint(want.Staging, false); err != nil {
		return err
	}
	options := mountOptions(want.FileSystem, flags, readOnly)
	if err := s.mountDevice(ctx, found.node(), want.Staging, want.FileSystem, options); err != nil {
		return err
	}
	if readOnly {
		return nil
	}
	return s.grow(ctx, found.node(), want.Staging, want.FileSystem)
}
