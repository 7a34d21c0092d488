package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Hosts serves HostService.
type Hosts struct {
	pb.UnimplementedHostServiceServer
	kind kind[*model.Host, *pb.Host]
}

// NewHosts makes the service.
func NewHosts(s *store.Store, counts *Counts, callers Callers) *Hosts {
	return &Hosts{kind: kind[*model.Host, *pb.Host]{
		objects: s.Hosts, read: readHost, show: showHost, fill: counts.hosts, keep: store.KeepHostSecrets,
		callers: callers,
	}}
}

// CreateHost implements HostService.
func (x *Hosts) CreateHost(ctx context.Context, r *pb.CreateHostRequest) (*pb.CreateHostResponse, error) {
	made, err := x.kind.create(ctx, r.GetHost(), r.GetDryRun())
	return &pb.CreateHostResponse{Host: made}, err
}

// GetHost implements HostService.
func (x *Hosts) GetHost(ctx context.Context, r *pb.GetHostRequest) (*pb.GetHostResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetHostResponse{Host: got}, err
}

// ListHosts implements HostService.
func (x *Hosts) ListHosts(ctx context.Context, r *pb.ListHostsRequest) (*pb.ListHostsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListHostsResponse{Hosts: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateHost implements HostService.
func (x *Hosts) UpdateHost(ctx context.Context, r *pb.UpdateHostRequest) (*pb.UpdateHostResponse, error) {
	changed, err := x.kind.update(ctx, r.GetHost(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateHostResponse{Host: changed}, err
}

// DeleteHost implements HostService.
func (x *Hosts) DeleteHost(ctx context.Context, r *pb.DeleteHostRequest) (*pb.DeleteHostResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteHostResponse{Host: gone}, err
}

// WatchHosts implements HostService.
func (x *Hosts) WatchHosts(r *pb.WatchHostsRequest, stream pb.HostService_WatchHostsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.Host, v int64) *pb.WatchHostsResponse {
		return &pb.WatchHostsResponse{Type: t, Host: o, ResourceVersion: v}
	})
}

func readHost(m *pb.Host) *model.Host {
	spec := m.GetSpec()
	return &model.Host{Meta: readMeta(m.GetMeta()), Spec: model.HostSpec{
		Initiators: spec.GetInitiators(), Chap: readChap(spec.GetChap()), MutualChap: readChap(spec.GetMutualChap()),
		AllowUnauthenticated: spec.GetAllowUnauthenticated(), Switches: spec.GetSwitches(),
		MaxSessions: spec.GetMaxSessions(),
	}}
}

func readChap(m *pb.ChapCredentials) *model.ChapCredentials {
	if m == nil {
		return nil
	}
	return &model.ChapCredentials{Username: m.GetUsername(), Password: model.NewSecret(m.GetPassword())}
}

func showHost(h *model.Host) *pb.Host {
	return &pb.Host{
		Meta: showMeta(&h.Meta),
		Spec: &pb.HostSpec{
			Initiators: h.Spec.Initiators, Chap: showChap(h.Spec.Chap), MutualChap: showChap(h.Spec.MutualChap),
			AllowUnauthenticated: h.Spec.AllowUnauthenticated, Switches: h.Spec.Switches, MaxSessions: h.Spec.MaxSessions,
		},
		Status: &pb.HostStatus{Conditions: showConditions(h.Status.Conditions)},
	}
}

// showChap omits the password.
func showChap(c *model.ChapCredentials) *pb.ChapCredentials {
	if c == nil {
		return nil
	}
	return &pb.ChapCredentials{Username: c.Username, PasswordSet: !c.Password.IsZero()}
}
