package controller

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxPage is the largest page of the control plane.
const maxPage = 1000

var ours = map[string]string{labelMadeBy: madeBy}

// page converts CSI's paging to the control plane's.
func page(entries int32, token string) (*pb.ListOptions, error) {
	if entries < 0 {
		return nil, invalid("max entries is %d", entries)
	}
	return &pb.ListOptions{PageSize: min(entries, maxPage), PageToken: token, LabelSelector: ours}, nil
}

// listed converts the refusal of a token to CSI's error for it.
func listed(err error, token string) error {
	if token != "" && status.Code(err) == codes.InvalidArgument {
		return status.Errorf(codes.Aborted, "starting token %.80q is not one of this driver: start again without a token", token)
	}
	return clientError(err)
}

// ListVolumes implements csi.ControllerServer. It does not list volumes that the driver did not make.
func (s *Service) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	options, err := page(r.GetMaxEntries(), r.GetStartingToken())
	if err != nil {
		return nil, err
	}
	response, topologies := &csi.ListVolumesResponse{}, map[string]*csi.Volume{}
	for list, err := range client.Pages(ctx, s.volumes.ListVolumes, &pb.ListVolumesRequest{Options: options}) {
		if err != nil {
			return nil, listed(err, r.GetStartingToken())
		}
		for _, volume := range list.GetVolumes() {
			entry, err := s.entry(ctx, volume, topologies)
			if err != nil {
				return nil, err
			}
			response.Entries = append(response.Entries, entry)
		}
		if r.GetMaxEntries() > 0 { // one page, and the token of the next one
			response.NextToken = list.GetNextPageToken()
			break
		}
	}
	return response, nil
}

// entry returns an entry of a list. known caches the topology of pools.
func (s *Service) entry(ctx context.Context, volume *pb.Volume, known map[string]*csi.Volume,
) (*csi.ListVolumesResponse_Entry, error) {
	like := volume.GetSpec().GetPool() + " " + volume.GetMeta().GetLabels()[labelTopology]
	if known[like] == nil {
		shown, err := s.toCSI(ctx, volume)
		if err != nil {
			return nil, err
		}
		known[like] = shown
	}
	return &csi.ListVolumesResponse_Entry{
		Volume: &csi.Volume{VolumeId: volume.GetMeta().GetName(), CapacityBytes: volume.GetSpec().GetSizeBytes(),
			AccessibleTopology: known[like].GetAccessibleTopology()},
		Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: published(volume)},
	}, nil
}

func published(volume *pb.Volume) []string {
	nodes := publishedTo(volume.GetMeta().GetLabels())
	slices.Sort(nodes)
	return nodes
}

// ControllerGetVolume implements csi.ControllerServer.
func (s *Service) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest,
) (*csi.ControllerGetVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume id is missing")
	}
	volume, err := s.volume(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	shown, err := s.toCSI(ctx, volume)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: shown, Status: &csi.ControllerGetVolumeResponse_VolumeStatus{
		PublishedNodeIds: published(volume)}}, nil
}

// volume returns a volume by its id: NotFound even for an id that is no valid name.
func (s *Service) volume(ctx context.Context, id string) (*pb.Volume, error) {
	got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: id})
	if err != nil {
		return nil, sourceless(id, err)
	}
	return got.GetVolume(), nil
}

func sourceless(id string, err error) error {
	if !objectName.MatchString(id) {
		return status.Errorf(codes.NotFound, "there is no %q", id)
	}
	return clientError(err)
}
