package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// DeleteVolume implements csi.ControllerServer.
func (s *Service) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	name := r.GetVolumeId()
	if name == "" {
		return nil, invalid("volume id is missing")
	}
	done, err := s.busy.Begin(name)
	if err != nil {
		return nil, err
	}
	defer done()
	gone := &csi.DeleteVolumeResponse{}
	if !objectName.MatchString(name) { // no object can have such a name
		return gone, nil
	}
	got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
	if absent(err) {
		return gone, nil
	}
	if err != nil {
		return nil, clientError(err)
	}
	meta := got.GetVolume().GetMeta()
	if meta.GetLabels()[labelMadeBy] != madeBy {
		return nil, precondition("volume %s was not made by %s: delete it by `sluicectl volume delete` or its Volume", name, madeBy)
	}
	if nodes := publishedTo(meta.GetLabels()); len(nodes) > 0 {
		return nil, precondition("volume %s is published to %v", name, nodes)
	}
	_, err = s.volumes.DeleteVolume(ctx, &pb.DeleteVolumeRequest{Name: name, Options: &pb.DeleteOptions{Uid: meta.GetUid()}})
	if err != nil && !absent(err) {
		return nil, clientError(err)
	}
	return gone, wait(ctx, func(ctx context.Context) (string, error) {
		got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
		if absent(err) || err == nil && got.GetVolume().GetMeta().GetUid() != meta.GetUid() {
			return "", nil
		}
		if err != nil && status.Code(err) != codes.Unavailable {
			return "", err
		}
		return "volume " + name + " is being deleted", nil
	})
}
