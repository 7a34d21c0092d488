package controller

import (
	"context"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Parameters of a VolumeAttributesClass: sustained rates per second, and bursts; 0 removes a limit.
const (
	parameterIOPS        = "iops"
	parameterIOPSBurst   = "iopsBurst"
	parameterBytes       = "bytesPerSecond"
	parameterBytesBurst  = "bytesBurst"
	smallestBytesPerTime = mebibyte
)

// changeQos returns the changed limits; a parameter that is not given stays.
func changeQos(from *pb.Qos, given map[string]string) (*pb.Qos, error) {
	if len(given) == 0 {
		return from, nil
	}
	to := &pb.Qos{}
	if from != nil {
		to = proto.Clone(from).(*pb.Qos)
	}
	fields := map[string]*int64{parameterIOPS: &to.Iops, parameterIOPSBurst: &to.IopsBurst,
		parameterBytes: &to.BytesPerSecond, parameterBytesBurst: &to.BytesBurst}
	for key, value := range given {
		field := fields[key]
		if field == nil {
			return nil, invalid("unknown mutable parameter %q; known are %s, %s, %s, %s", key, parameterIOPS, parameterIOPSBurst,
				parameterBytes, parameterBytesBurst)
		}
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil || number < 0 {
			return nil, invalid("mutable parameter %s is %q and no number from 0", key, value)
		}
		*field = number
	}
	if to.GetBytesPerSecond() != 0 && to.GetBytesPerSecond() < smallestBytesPerTime {
		return nil, invalid("mutable parameter %s is %d; 0 (no limit) and %d and more are possible", parameterBytes,
			to.GetBytesPerSecond(), smallestBytesPerTime)
	}
	return to, nil
}

// ControllerModifyVolume implements csi.ControllerServer.
func (s *Service) ControllerModifyVolume(ctx context.Context, r *csi.ControllerModifyVolumeRequest,
) (*csi.ControllerModifyVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume id is missing")
	}
	err := s.changeVolume(ctx, r.GetVolumeId(), "spec.qos", func(volume *pb.Volume) (bool, error) {
		qos, err := changeQos(volume.GetSpec().GetQos(), r.GetMutableParameters())
		volume.Spec.Qos = qos
		return true, err
	})
	return &csi.ControllerModifyVolumeResponse{}, err
}
