package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// casTries bounds the repetitions of a change because the object has changed meanwhile.
const casTries = 16

// ControllerPublishVolume implements csi.ControllerServer: the volume becomes a LUN of a target to which the node may log in. The
// portals are determined now.
func (s *Service) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetNodeId() == "" {
		return nil, invalid("volume id or node id is missing")
	}
	if r.GetVolumeCapability() == nil {
		return nil, invalid("volume capability is missing")
	}
	if why := unsupported(r.GetVolumeCapability()); why != "" {
		return nil, invalid("%s", why)
	}
	chap, err := attachment.ReadCHAP(r.GetSecrets())
	if err != nil {
		return nil, invalid("%s", err)
	}
	done, err := s.busy.Begin(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := s.volume(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	node, err := attachment.ParseNode(r.GetNodeId())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	shared := slices.Contains(multiNode, r.GetVolumeCapability().GetAccessMode().GetMode())
	volume, err := s.claim(ctx, r.GetVolumeId(), r.GetNodeId(), shared)
	if err != nil {
		return nil, err
	}
	target, admitted, err := s.admit(ctx, volume, node, chap, shared, r.GetReadonly())
	if err != nil {
		return nil, err
	}
	reached, err := s.reached(ctx, target, volume)
	if err != nil {
		return nil, err
	}
	reached.DriverKey = admitted.driverKey
	return &csi.ControllerPublishVolumeResponse{PublishContext: reached.Context()}, nil
}

// admit shows the volume to the node's Host. If that Host is deleted at the same time, with the node's previous last volume, it
// is created again.
func (s *Service) admit(ctx context.Context, volume *pb.Volume, node attachment.Node, chap attachment.CHAP, shared, readOnly bool,
) (*pb.Target, admission, error) {
	for range casTries {
		admitted, err := s.ensureHost(ctx, node, chap)
		if err != nil {
			return nil, admission{}, err
		}
		target, err := s.show(ctx, volume, node, admitted.host, shared, readOnly)
		if !errors.Is(err, errNoHost) {
			return target, admitted, err
		}
	}
	return nil, admission{}, errNoHost
}

// claim records on the volume that it is published to a node, unless it is published to another one and cannot be shared. The
// record is stored by compare-and-swap, so the first node has it. Publications under an earlier initiator name of the node are
// withdrawn first; a node that has announced a key since then keeps them.
func (s *Service) claim(ctx context.Context, name, node string, shared bool) (volume *pb.Volume, err error) {
	volume, err = s.volume(ctx, name)
	if err != nil {
		return nil, err
	}
	if volume.GetMeta().GetLabels()[publishedLabel(node)] == "" {
		if err := s.withdrawFrom(ctx, volume, node); err != nil {
			return nil, err
		}
	}
	err = s.relabel(ctx, name, func(labels map[string]string) (bool, error) {
		nodes, noted := publishedTo(labels), labels[publishedLabel(node)]
		if noted == node {
			return false, nil
		}
		if noted == "" && len(nodes) > 0 && !shared {
			return false, precondition("volume %s is published to %v, and one node at a time may have it", name, nodes)
		}
		labels[publishedLabel(node)] = node
		return true, nil
	}, &volume)
	return volume, err
}

// relabel changes a volume's labels; change reports whether there is a change.
func (s *Service) relabel(ctx context.Context, name string, change func(map[string]string) (bool, error), into **pb.Volume) error {
	return s.changeVolume(ctx, name, "meta.labels", func(volume *pb.Volume) (bool, error) {
		if *into = volume; volume.GetMeta().Labels == nil {
			volume.Meta.Labels = map[string]string{}
		}
		return change(volume.GetMeta().GetLabels())
	})
}

// changeVolume changes a field of a volume, and repeats that if the volume has changed meanwhile, which the control plane itself
// also does. change reports whether there is a change.
func (s *Service) changeVolume(ctx context.Context, name, field string, change func(*pb.Volume) (bool, error)) error {
	for range casTries {
		volume, err := s.volume(ctx, name)
		if err != nil {
			return err
		}
		changed, err := change(volume)
		if err != nil || !changed {
			return err
		}
		_, err = s.volumes.UpdateVolume(ctx, &pb.UpdateVolumeRequest{Volume: volume,
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{field}}})
		if status.Code(err) != codes.Aborted {
			return clientError(err)
		}
	}
	return status.Errorf(codes.Aborted, "volume %s changes all the time; try again", name)
}

// ControllerUnpublishVolume implements csi.ControllerServer. It succeeds once no gateway that may still serve admits the node to
// the volume, because only then may another node get it.
func (s *Service) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume id is missing")
	}
	done, err := s.busy.Begin(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	gone := &csi.ControllerUnpublishVolumeResponse{}
	volume, err := s.volume(ctx, r.GetVolumeId())
	if absent(err) {
		return gone, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.withdrawFrom(ctx, volume, r.GetNodeId()); err != nil {
		return nil, err
	}
	return gone, nil
}

// withdrawFrom withdraws a volume from a node, under all ids under which it was published to it: a reinstalled node has another
// initiator name, with which this call is made. An empty id means all nodes.
func (s *Service) withdrawFrom(ctx context.Context, volume *pb.Volume, node string) error {
	for _, id := range publishedTo(volume.GetMeta().GetLabels()) {
		if node != "" && !sameNode(node, id) {
			continue
		}
		if err := s.withdraw(ctx, volume, id); err != nil {
			return err
		}
		delete(volume.Meta.Labels, publishedLabel(id)) // otherwise the next call would find that the node still has the volume
	}
	return nil
}

// sameNode reports whether two ids belong to one Kubernetes node.
func sameNode(node, other string) bool {
	a, wrong := attachment.ParseNode(node)
	b, wrongToo := attachment.ParseNode(other)
	return node == other || wrong == nil && wrongToo == nil && a.Name == b.Name
}

// withdraw withdraws a volume from a node, and with the node's last volume its Host. The record of the publication is removed
// last.
func (s *Service) withdraw(ctx context.Context, volume *pb.Volume, id string) error {
	node, err := attachment.ParseNode(id)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := s.hide(ctx, volume, node); err != nil {
		return err
	}
	if err := s.forget(ctx, node); err != nil {
		return err
	}
	return s.relabel(ctx, volume.GetMeta().GetName(), func(labels map[string]string) (bool, error) {
		_, noted := labels[publishedLabel(id)]
		delete(labels, publishedLabel(id))
		return noted, nil
	}, &volume)
}
