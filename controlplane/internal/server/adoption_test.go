package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// rbdPool creates a pool in Ceph, from which volumes may adopt images.
func rbdPool(t *testing.T, by pb.StoragePoolServiceClient, name string) {
	t.Helper()
	if _, err := by.CreateStoragePool(t.Context(), &pb.CreateStoragePoolRequest{StoragePool: &pb.StoragePool{Meta: &pb.ObjectMeta{Name: name},
		Spec: &pb.StoragePoolSpec{Kind: &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice",
			Key: "k", Pool: "rbd"}}}}}); err != nil {
		t.Fatal(err)
	}
}

// Each request finds the image free before any of them stores its volume.
func TestOfRequestsThatAdoptAnImageAtOnceOneSucceeds(t *testing.T) {
	s := start(t)
	admin := s.as("admin")
	rbdPool(t, pb.NewStoragePoolServiceClient(admin), "ceph")
	volumes := pb.NewVolumeServiceClient(admin)
	const rounds, requests = 10, 8
	for round := range rounds {
		answers := make(chan error, requests)
		for i := range requests {
			go func() {
				_, err := volumes.CreateVolume(t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{
					Meta: &pb.ObjectMeta{Name: fmt.Sprintf("v-%d-%d", round, i)}, Spec: &pb.VolumeSpec{Pool: "ceph", SizeBytes: 1 << 30,
						Source: &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: fmt.Sprintf("golden-%d", round)}}}}})
				answers <- err
			}()
		}
		adopted := 0
		for range requests {
			switch err := <-answers; status.Code(err) {
			case codes.OK:
				adopted++
			case codes.FailedPrecondition, codes.Aborted:
			default:
				t.Error(err)
			}
		}
		if adopted != 1 {
			t.Errorf("%d volumes adopt golden-%d", adopted, round)
		}
	}
}

// A Volume in any namespace may name an image, but must not thereby obtain the data of another volume.
func TestOnlyListedImagesAreAdoptedByTheOperatorAndNoImageInUseIsAdopted(t *testing.T) {
	s := start(t)
	admin, operator := s.as("admin"), s.as("operator")
	pool := &pb.StoragePool{Meta: &pb.ObjectMeta{Name: "ceph"}, Spec: &pb.StoragePoolSpec{
		AdoptableImages: []string{"golden", "import-*-disk"},
		Kind:            &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Key: "k", Pool: "rbd"}}}}
	pools := pb.NewStoragePoolServiceClient(admin)
	if _, err := pools.CreateStoragePool(t.Context(), &pb.CreateStoragePoolRequest{StoragePool: pool}); err != nil {
		t.Fatal(err)
	}
	adopt := func(by pb.VolumeServiceClient, name, image string) (*pb.Volume, error) {
		made, err := by.CreateVolume(t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{Meta: &pb.ObjectMeta{Name: name},
			Spec: &pb.VolumeSpec{Pool: "ceph", SizeBytes: 1 << 30, Source: &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: image}}}}})
		return made.GetVolume(), err
	}
	asAdmin, asOperator := pb.NewVolumeServiceClient(admin), pb.NewVolumeServiceClient(operator)
	first, err := asAdmin.CreateVolume(t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{Meta: &pb.ObjectMeta{Name: "first"},
		Spec: &pb.VolumeSpec{Pool: "ceph", SizeBytes: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := pb.NewSnapshotServiceClient(admin).CreateSnapshot(t.Context(), &pb.CreateSnapshotRequest{
		Snapshot: &pb.Snapshot{Meta: &pb.ObjectMeta{Name: "monday"}, Spec: &pb.SnapshotSpec{Volume: "first"}}})
	if err != nil {
		t.Fatal(err)
	}
	inUse, snapshotted := "volume-"+first.GetVolume().GetMeta().GetUid(), "snapshot-"+snapshot.GetSnapshot().GetMeta().GetUid()
	const orphan = "volume-00000000-0000-4000-8000-000000000000"
	for i, c := range []struct {
		by    pb.VolumeServiceClient
		image string
		want  codes.Code
		// listed: the refusal is because of the list.
		listed bool
	}{
		{asOperator, "payroll", codes.FailedPrecondition, true},
		{asOperator, orphan, codes.FailedPrecondition, true},
		{asOperator, inUse, codes.FailedPrecondition, false},
		{asAdmin, inUse, codes.FailedPrecondition, false},
		{asAdmin, snapshotted, codes.FailedPrecondition, false},
		{asOperator, "golden", codes.OK, false},
		{asAdmin, "golden", codes.FailedPrecondition, false}, // another volume adopts it
		{asOperator, "import-7-disk", codes.OK, false},
		{asOperator, "import-7-disk-2", codes.FailedPrecondition, true},
		{asAdmin, "payroll", codes.OK, false},
		{asAdmin, orphan, codes.OK, false},
	} {
		_, err := adopt(c.by, "v"+string(rune('a'+i)), c.image)
		if status.Code(err) != c.want {
			t.Errorf("%d: %s: %v, want %v", i, c.image, err, c.want)
		}
		if c.listed && !strings.Contains(status.Convert(err).Message(), "spec.adoptableImages") {
			t.Errorf("%d: the refusal does not name the field: %v", i, err)
		}
	}
}
