package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

const initiatorFile = "/etc/iscsi/initiatorname.iscsi"

// initiator returns the name with which the machine's iscsid logs in.
func (s *Service) initiator() (name string, err error) {
	err = s.host.Do(func() error {
		text, err := os.ReadFile(s.initiatorFile)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not there: install open-iscsi on the node", s.initiatorFile)
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "InitiatorName="); ok {
				name = strings.TrimSpace(value)
			}
		}
		return nil
	})
	return name, err
}

// NodeGetInfo implements csi.NodeServer.
func (s *Service) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	initiator, err := s.initiator()
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	id, err := s.identify(initiator)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	s.keys.Lock()
	s.announcedID = id
	s.keys.Unlock()
	return &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: maxVolumes,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{attachment.TopologyKey: s.name}}}, nil
}
