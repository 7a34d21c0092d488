// Package client connects to a Sluice control plane. sluicectl, the operator, the CSI driver and the tests use it.
//
// Connect returns a gRPC connection for the services of package sluicev1. All and Pages iterate over the result of any List call.
// IsNotFound, Fields and Explain read the errors of calls.
//
//	connection, err := client.Connect(client.Options{
//		Endpoints: []string{"192.0.2.1:7460", "192.0.2.2:7460"},
//		TLS:       client.Files{CA: "ca.crt", Certificate: "admin.crt", Key: "admin.key"},
//	})
//	...
//	volumes := sluicev1.NewVolumeServiceClient(connection)
//	for volume, err := range client.All(ctx, volumes.ListVolumes, &sluicev1.ListVolumesRequest{},
//		(*sluicev1.ListVolumesResponse).GetVolumes) {
//		...
//	}
//
// All functions and methods of this package may be called by several goroutines.
package client
