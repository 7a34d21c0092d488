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

// controlPlane is what a caller observes about the control plane.
type controlPlane struct {
	control *pb.GetControlPlaneResponse
	// ahead is the time by which the control plane's clock is ahead of the local one, corrected by the duration of the call.
	ahead time.Duration
	// certificates are the control plane's, from the TLS handshake.
	certificates []*x509.Certificate
}

// clusterObjects has all objects of the control plane and what was observed about it.
type clusterObjects struct {
	*controlPlane
	gateways     []*pb.Gateway
	gatewayPools []*pb.GatewayPool
	targets      []*pb.Target
	volumes      []*pb.Volume
	hosts        []*pb.Host
	pools        []*pb.StoragePool
	fabrics      []*pb.Fabric
	sessions     []*pb.Session
	// objects has all objects, by kind.
	objects map[*kind][]proto.Message
}

func survey(ctx context.Context, connection *grpc.ClientConn) (*clusterObjects, error) {
	met, err := meet(ctx, connection)
	if err != nil {
		return nil, err
	}
	w := &clusterObjects{controlPlane: met, objects: map[*kind][]proto.Message{}}
	var all []proto.Message
	for _, k := range kinds {
		objects, err := k.list(ctx, connection, nil)
		if err != nil {
			return nil, err
		}
		w.objects[k] = objects
		all = append(all, objects...)
	}
	w.gateways, w.gatewayPools, w.targets = ofType[*pb.Gateway](all), ofType[*pb.GatewayPool](all), ofType[*pb.Target](all)
	w.volumes, w.hosts, w.pools = ofType[*pb.Volume](all), ofType[*pb.Host](all), ofType[*pb.StoragePool](all)
	w.fabrics, w.sessions = ofType[*pb.Fabric](all), ofType[*pb.Session](all)
	return w, nil
}

// ofType returns the messages of one type.
func ofType[M proto.Message](all []proto.Message) []M {
	var found []M
	for _, message := range all {
		if m, ok := message.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// meet reads the identity of the control plane. An older control plane without this call is accepted.
func meet(ctx context.Context, connection *grpc.ClientConn) (*controlPlane, error) {
	met := &controlPlane{}
	var who peer.Peer
	begun := time.Now()
	control, err := pb.NewMaintenanceServiceClient(connection).GetControlPlane(ctx, &pb.GetControlPlaneRequest{},
		grpc.Peer(&who))
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	ended := time.Now()
	if at := control.GetTime(); at != nil {
		if there := at.AsTime(); there.After(ended) {
			met.ahead = there.Sub(ended)
		} else if there.Before(begun) {
			met.ahead = there.Sub(begun)
		}
	}
	met.control = control
	if info, ok := who.AuthInfo.(credentials.TLSInfo); ok {
		met.certificates = info.State.PeerCertificates
	}
	return met, nil
}
