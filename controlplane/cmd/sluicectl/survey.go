package main

import (
	"context"
	"crypto/x509"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// whole is everything the control plane keeps, and what is seen of it.
type whole struct {
	control *pb.GetControlPlaneResponse
	// ahead is how far the control plane's clock is before ours; what the call took is taken off.
	ahead time.Duration
	// certificates are what the control plane showed us.
	certificates []*x509.Certificate

	gateways     []*pb.Gateway
	gatewayPools []*pb.GatewayPool
	targets      []*pb.Target
	volumes      []*pb.Volume
	hosts        []*pb.Host
	pools        []*pb.StoragePool
	fabrics      []*pb.Fabric
	sessions     []*pb.Session
	// objects are all of them, by kind.
	objects map[*kind][]proto.Message
}

func survey(ctx context.Context, connection *grpc.ClientConn) (*whole, error) {
	w := &whole{objects: map[*kind][]proto.Message{}}
	if err := w.meet(ctx, connection); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		objects, err := k.list(ctx, connection, nil)
		if err != nil {
			return nil, err
		}
		w.objects[k] = objects
		for _, object := range objects {
			w.sort(object)
		}
	}
	return w, nil
}

func (w *whole) sort(object proto.Message) {
	switch o := object.(type) {
	case *pb.Gateway:
		w.gateways = append(w.gateways, o)
	case *pb.GatewayPool:
		w.gatewayPools = append(w.gatewayPools, o)
	case *pb.Target:
		w.targets = append(w.targets, o)
	case *pb.Volume:
		w.volumes = append(w.volumes, o)
	case *pb.Host:
		w.hosts = append(w.hosts, o)
	case *pb.StoragePool:
		w.pools = append(w.pools, o)
	case *pb.Fabric:
		w.fabrics = append(w.fabrics, o)
	case *pb.Session:
		w.sessions = append(w.sessions, o)
	}
}

// meet learns what answers. A control plane too old to say is none the worse.
func (w *whole) meet(ctx context.Context, connection *grpc.ClientConn) error {
	var who peer.Peer
	begun := time.Now()
	control, err := pb.NewMaintenanceServiceClient(connection).GetControlPlane(ctx, &pb.GetControlPlaneRequest{},
		grpc.Peer(&who))
	if err != nil && status.Code(err) != codes.Unimplemented {
		return err
	}
	ended := time.Now()
	if at := control.GetTime(); at != nil {
		if there := at.AsTime(); there.After(ended) {
			w.ahead = there.Sub(ended)
		} else if there.Before(begun) {
			w.ahead = there.Sub(begun)
		}
	}
	w.control = control
	if info, ok := who.AuthInfo.(credentials.TLSInfo); ok {
		w.certificates = info.State.PeerCertificates
	}
	return nil
}
