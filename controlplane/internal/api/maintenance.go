package api

import (
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Maintenance serves MaintenanceService.
type Maintenance struct {
	pb.UnimplementedMaintenanceServiceServer
	store *store.Store
}

// NewMaintenance makes the service.
func NewMaintenance(s *store.Store) *Maintenance { return &Maintenance{store: s} }

// Backup implements MaintenanceService.
func (m *Maintenance) Backup(_ *pb.BackupRequest, stream pb.MaintenanceService_BackupServer) error {
	return statusOf(m.store.Backup(stream.Context(), chunks{stream}))
}

// chunks sends what is written.
type chunks struct {
	stream pb.MaintenanceService_BackupServer
}

func (c chunks) Write(part []byte) (int, error) {
	return len(part), c.stream.Send(&pb.BackupResponse{Chunk: part})
}
