package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Gateways serves GatewayService.
type Gateways struct {
	pb.UnimplementedGatewayServiceServer
	kind  kind[*model.Gateway, *pb.Gateway]
	store *store.Store
}

// NewGateways makes the service.
func NewGateways(s *store.Store, counts *Counts) *Gateways {
	return &Gateways{store: s, kind: kind[*model.Gateway, *pb.Gateway]{
		objects: s.Gateways, read: readGateway, show: showGateway, fill: counts.gateways,
	}}
}

// CreateGateway implements GatewayService.
func (x *Gateways) CreateGateway(ctx context.Context, r *pb.CreateGatewayRequest) (*pb.CreateGatewayResponse, error) {
	made, err := x.kind.create(ctx, r.GetGateway(), r.GetDryRun())
	return &pb.CreateGatewayResponse{Gateway: made}, err
}

// GetGateway implements GatewayService.
func (x *Gateways) GetGateway(ctx context.Context, r *pb.GetGatewayRequest) (*pb.GetGatewayResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetGatewayResponse{Gateway: got}, err
}

// ListGateways implements GatewayService.
func (x *Gateways) ListGateways(ctx context.Context, r *pb.ListGatewaysRequest) (*pb.ListGatewaysResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListGatewaysResponse{Gateways: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateGateway implements GatewayService.
func (x *Gateways) UpdateGateway(ctx context.Context, r *pb.UpdateGatewayRequest) (*pb.UpdateGatewayResponse, error) {
	changed, err := x.kind.update(ctx, r.GetGateway(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateGatewayResponse{Gateway: changed}, err
}

// DeleteGateway implements GatewayService.
func (x *Gateways) DeleteGateway(ctx context.Context, r *pb.DeleteGatewayRequest) (*pb.DeleteGatewayResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteGatewayResponse{Gateway: gone}, err
}

// WatchGateways implements GatewayService.
func (x *Gateways) WatchGateways(r *pb.WatchGatewaysRequest, stream pb.GatewayService_WatchGatewaysServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.Gateway, v int64) *pb.WatchGatewaysResponse {
		return &pb.WatchGatewaysResponse{Type: t, Gateway: o, ResourceVersion: v}
	})
}

// DrainGateway implements GatewayService.
func (x *Gateways) DrainGateway(ctx context.Context, r *pb.DrainGatewayRequest) (*pb.DrainGatewayResponse, error) {
	got, err := x.drain(ctx, r.GetName(), true, r.GetDryRun())
	return &pb.DrainGatewayResponse{Gateway: got}, err
}

// UndrainGateway implements GatewayService.
func (x *Gateways) UndrainGateway(ctx context.Context, r *pb.UndrainGatewayRequest) (*pb.UndrainGatewayResponse, error) {
	got, err := x.drain(ctx, r.GetName(), false, r.GetDryRun())
	return &pb.UndrainGatewayResponse{Gateway: got}, err
}

// RotateGatewayKeys implements GatewayService.
func (x *Gateways) RotateGatewayKeys(ctx context.Context, r *pb.RotateGatewayKeysRequest) (*pb.RotateGatewayKeysResponse, error) {
	if !r.GetDryRun() {
		if _, err := x.store.RotatePairRootsNow(ctx); err != nil {
			return nil, statusOf(err)
		}
	}
	return &pb.RotateGatewayKeysResponse{}, nil
}

// drain records the request; the leader carries it out.
func (x *Gateways) drain(ctx context.Context, name string, wanted, dryRun bool) (*pb.Gateway, error) {
	gateway, err := x.store.RequestDrain(ctx, name, wanted, dryRun)
	if err != nil {
		return nil, statusOf(err)
	}
	return x.kind.filled(ctx, gateway)
}

func readGateway(m *pb.Gateway) *model.Gateway {
	spec := m.GetSpec()
	gateway := &model.Gateway{Meta: readMeta(m.GetMeta()), Spec: model.GatewaySpec{
		GatewayPool: spec.GetGatewayPool(), Node: spec.GetNode(), ForwardingAddress: spec.GetForwardingAddress(),
		Weight: spec.GetWeight(), Cordoned: spec.GetCordoned(),
	}}
	for _, portal := range spec.GetPortals() {
		gateway.Spec.Portals = append(gateway.Spec.Portals, model.Portal{
			Listen: portal.GetListen(), Advertised: portal.GetAdvertised(), Fabric: portal.GetFabric(),
			Switch: portal.GetSwitch(),
		})
	}
	return gateway
}

func showGateway(g *model.Gateway) *pb.Gateway {
	shown := &pb.Gateway{
		Meta: showMeta(&g.Meta),
		Spec: &pb.GatewaySpec{
			GatewayPool: g.Spec.GatewayPool, Node: g.Spec.Node, ForwardingAddress: g.Spec.ForwardingAddress,
			Weight: g.Spec.Weight, Cordoned: g.Spec.Cordoned,
		},
		Status: &pb.GatewayStatus{
			Number: g.Status.Number, Health: healths[g.Status.Health], Version: g.Status.Version,
			AppliedVersion: g.Status.AppliedVersion, LastSeenTime: showTime(g.Status.LastSeen),
			Conditions: showConditions(g.Status.Conditions), DrainRequested: g.Status.Drain,
		},
	}
	for _, portal := range g.Spec.Portals {
		shown.Spec.Portals = append(shown.Spec.Portals, &pb.Portal{
			Listen: portal.Listen, Advertised: portal.Advertised, Fabric: portal.Fabric, Switch: portal.Switch,
		})
		shown.Status.PortalGroupTags = append(shown.Status.PortalGroupTags, g.Status.PortalGroupTags[portal.Fabric])
	}
	return shown
}

var healths = map[model.GatewayHealth]pb.GatewayHealth{
	model.GatewayNew:          pb.GatewayHealth_GATEWAY_HEALTH_NEW,
	model.GatewayReady:        pb.GatewayHealth_GATEWAY_HEALTH_READY,
	model.GatewayDisconnected: pb.GatewayHealth_GATEWAY_HEALTH_DISCONNECTED,
	model.GatewayDead:         pb.GatewayHealth_GATEWAY_HEALTH_DEAD,
	model.GatewayDraining:     pb.GatewayHealth_GATEWAY_HEALTH_DRAINING,
	model.GatewayNotServing:   pb.GatewayHealth_GATEWAY_HEALTH_NOT_SERVING,
	model.GatewayDrained:      pb.GatewayHealth_GATEWAY_HEALTH_DRAINED,
}
