package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestAMaskUpdatesItsFieldsOnly(t *testing.T) {
	s := start(t)
	ctx, fabrics := t.Context(), pb.NewFabricServiceClient(s.as("admin"))
	request := fabric("red")
	request.Fabric.Spec.Switches = []string{"s1", "s2"}
	if _, err := fabrics.CreateFabric(ctx, request); err != nil {
		t.Fatal(err)
	}
	update := func(path string) (*pb.UpdateFabricResponse, error) {
		return fabrics.UpdateFabric(ctx, &pb.UpdateFabricRequest{
			Fabric:     &pb.Fabric{Meta: &pb.ObjectMeta{Name: "red"}, Spec: &pb.FabricSpec{Subnets: []string{"192.0.2.0/24"}}},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}},
		})
	}
	got, err := update("spec.subnets")
	if err != nil || len(got.GetFabric().GetSpec().GetSwitches()) != 2 || len(got.GetFabric().GetSpec().GetSubnets()) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	for _, path := range []string{"meta.name", "status", "spec.nothing", "spec.subnets.x"} {
		_, err := update(path)
		wantField(t, err, codes.InvalidArgument, "updateMask")
	}
}

// A caller that changes one field need not send the others, even if a new object requires them.
func TestAMaskNeedsNothingOfTheSpecButItsFields(t *testing.T) {
	s := start(t)
	ctx, hosts := t.Context(), pb.NewHostServiceClient(s.as("admin"))
	if _, err := hosts.CreateHost(ctx, &pb.CreateHostRequest{Host: host("open-sesame-123")}); err != nil {
		t.Fatal(err)
	}
	update := func(spec *pb.HostSpec, paths ...string) (*pb.Host, error) {
		got, err := hosts.UpdateHost(ctx, &pb.UpdateHostRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
			Host: &pb.Host{Meta: &pb.ObjectMeta{Name: "web"}, Spec: spec}})
		return got.GetHost(), err
	}
	got, err := update(&pb.HostSpec{MaxSessions: 7}, "spec.max_sessions")
	if err != nil || got.GetSpec().GetMaxSessions() != 7 || len(got.GetSpec().GetInitiators()) != 1 || !got.GetSpec().GetChap().GetPasswordSet() {
		t.Fatalf("%v, %v", got, err)
	}
	_, err = update(&pb.HostSpec{MaxSessions: -1}, "spec.max_sessions")
	wantField(t, err, codes.InvalidArgument, "spec.maxSessions")
	_, err = update(&pb.HostSpec{Chap: &pb.ChapCredentials{Password: strings.Repeat("x", 256)}}, "spec.chap")
	wantField(t, err, codes.InvalidArgument, "spec.chap.password")
	_, err = update(&pb.HostSpec{MaxSessions: 7}, "spec.initiators") // cleared
	wantField(t, err, codes.InvalidArgument, "spec.initiators")
	_, err = update(&pb.HostSpec{MaxSessions: 7}, "spec")
	wantField(t, err, codes.InvalidArgument, "spec.initiators")
	_, err = update(&pb.HostSpec{MaxSessions: 7})
	wantField(t, err, codes.InvalidArgument, "spec.initiators")
	_, err = update(nil, "spec.max_sessions")
	wantField(t, err, codes.InvalidArgument, "spec")
}

// A change is made from the version that was read, or refused; without a version, from the stored one.
func TestAnUpdateOfAnOlderVersionIsRefusedAndChangesNothing(t *testing.T) {
	s := start(t)
	ctx, fabrics := t.Context(), pb.NewFabricServiceClient(s.as("admin"))
	made, err := fabrics.CreateFabric(ctx, fabric("red"))
	if err != nil {
		t.Fatal(err)
	}
	update := func(version int64, subnet string) (*pb.Fabric, error) {
		request := &pb.UpdateFabricRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.subnets"}}, Fabric: &pb.Fabric{
			Meta: &pb.ObjectMeta{Name: "red", ResourceVersion: version}, Spec: &pb.FabricSpec{Subnets: []string{subnet}}}}
		got, err := fabrics.UpdateFabric(ctx, request)
		return got.GetFabric(), err
	}
	read := made.GetFabric().GetMeta().GetResourceVersion()
	if _, err := update(read, "192.0.2.0/24"); err != nil {
		t.Fatal(err)
	}
	_, err = update(read, "198.51.100.0/24")
	wantCode(t, err, codes.Aborted)
	_, err = fabrics.DeleteFabric(ctx, &pb.DeleteFabricRequest{Name: "red", Options: &pb.DeleteOptions{ResourceVersion: read}})
	wantCode(t, err, codes.Aborted)
	got, err := fabrics.GetFabric(ctx, &pb.GetFabricRequest{Name: "red"})
	if err != nil || got.GetFabric().GetSpec().GetSubnets()[0] != "192.0.2.0/24" {
		t.Fatalf("%v, %v", got, err)
	}
	if now, err := update(0, "203.0.113.0/24"); err != nil || now.GetSpec().GetSubnets()[0] != "203.0.113.0/24" {
		t.Fatalf("without a version: %v, %v", now, err)
	}
}

func TestAViolatedPatternIsDescribedInWords(t *testing.T) {
	s := start(t)
	pool := func(name string, local *pb.LocalPool) *pb.CreateStoragePoolRequest {
		return &pb.CreateStoragePoolRequest{StoragePool: &pb.StoragePool{Meta: &pb.ObjectMeta{Name: name},
			Spec: &pb.StoragePoolSpec{Kind: &pb.StoragePoolSpec_Local{Local: local}}}}
	}
	for _, c := range []struct {
		request      *pb.CreateStoragePoolRequest
		field, words string
	}{
		{pool("Bad_Name", &pb.LocalPool{Node: "n", Directory: "/srv"}), "meta.name", "lower-case letters"},
		{pool("p", &pb.LocalPool{Node: "n", Directory: "srv"}), "spec.local.directory", "an absolute path"},
		{pool("p", &pb.LocalPool{Node: "n", Devices: []string{"sdb"}}), "spec.local.devices[0]", "below /dev"},
	} {
		_, err := pb.NewStoragePoolServiceClient(s.as("admin")).CreateStoragePool(t.Context(), c.request)
		wantField(t, err, codes.InvalidArgument, c.field)
		if text := status.Convert(err).Message(); !strings.Contains(text, c.words) || strings.Contains(text, "regex") || strings.Contains(text, "a-z") {
			t.Errorf("%s: %s", c.field, text)
		}
	}
}
