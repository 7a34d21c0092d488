package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Maintenance serves MaintenanceService.
type Maintenance struct {
	pb.UnimplementedMaintenanceServiceServer
	store *store.Store
	self  ControlPlane
}

// ControlPlane is the information about the answering process.
type ControlPlane struct {
	Version string
	// Replica is its name in logs.
	Replica string
	// EmbeddedStore: the store is in this process and can have no other member, so there is no other replica.
	EmbeddedStore bool
	// Certificates lists the certificates of this process and of its callers; nil: there are none.
	Certificates func() []Certificate
}

// Certificate has the expiry of a certificate.
type Certificate struct {
	// Role that it names; `ca` for a CA.
	Role string
	// Holder is its common name.
	Holder string
	End    time.Time
}

// NewMaintenance makes the service.
func NewMaintenance(s *store.Store, self ControlPlane) *Maintenance {
	return &Maintenance{store: s, self: self}
}

// GetControlPlane implements MaintenanceService.
func (m *Maintenance) GetControlPlane(context.Context, *pb.GetControlPlaneRequest) (*pb.GetControlPlaneResponse, error) {
	response := &pb.GetControlPlaneResponse{Version: m.self.Version, Replica: m.self.Replica,
		EmbeddedStore: m.self.EmbeddedStore, Time: timestamppb.Now(), SystemId: m.store.SystemID()}
	if m.self.Certificates != nil {
		for _, certificate := range m.self.Certificates() {
			response.Certificates = append(response.Certificates, &pb.CertificateExpiry{
				Role: certificate.Role, Holder: certificate.Holder, NotAfter: timestamppb.New(certificate.End)})
		}
	}
	return response, nil
}

// ListHeldOperations implements MaintenanceService.
func (m *Maintenance) ListHeldOperations(ctx context.Context, _ *pb.ListHeldOperationsRequest) (*pb.ListHeldOperationsResponse, error) {
	held, err := m.store.Held(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	response := &pb.ListHeldOperationsResponse{}
	for _, object := range held {
		response.Objects = append(response.Objects,
			&pb.HeldOperations{Kind: string(object.Kind), Name: object.Name, Operations: object.Operations})
	}
	return response, nil
}

// ConfirmHeldOperations implements MaintenanceService.
func (m *Maintenance) ConfirmHeldOperations(ctx context.Context, request *pb.ConfirmHeldOperationsRequest,
) (*pb.ConfirmHeldOperationsResponse, error) {
	if err := m.store.ConfirmHeld(ctx, model.Kind(request.GetKind()), request.GetName()); err != nil {
		return nil, statusOf(err)
	}
	return &pb.ConfirmHeldOperationsResponse{}, nil
}

// DiscardHeldOperations implements MaintenanceService.
func (m *Maintenance) DiscardHeldOperations(ctx context.Context, request *pb.DiscardHeldOperationsRequest,
) (*pb.DiscardHeldOperationsResponse, error) {
	if err := m.store.DiscardHeld(ctx, model.Kind(request.GetKind()), request.GetName()); err != nil {
		return nil, statusOf(err)
	}
	return &pb.DiscardHeldOperationsResponse{}, nil
}

// Backup implements MaintenanceService.
func (m *Maintenance) Backup(_ *pb.BackupRequest, stream pb.MaintenanceService_BackupServer) error {
	return statusOf(m.store.Backup(stream.Context(), chunks{stream}))
}

// chunks sends the written bytes in messages.
type chunks struct {
	stream pb.MaintenanceService_BackupServer
}

func (c chunks) Write(part []byte) (int, error) {
	return len(part), c.stream.Send(&pb.BackupResponse{Chunk: part})
}
