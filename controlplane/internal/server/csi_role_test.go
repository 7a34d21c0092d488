package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	csiDriver = "csi.sluice.dev"
)

// objectsOf has the clients of one role for the kinds that the CSI driver changes.
type objectsOf struct {
	t         *testing.T
	volumes   pb.VolumeServiceClient
	targets   pb.TargetServiceClient
	hosts     pb.HostServiceClient
	snapshots pb.SnapshotServiceClient
}

func objects(t *testing.T, c *grpc.ClientConn) objectsOf {
	return objectsOf{t, pb.NewVolumeServiceClient(c), pb.NewTargetServiceClient(c), pb.NewHostServiceClient(c), pb.NewSnapshotServiceClient(c)}
}

func meta(name, manager string) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: name, Labels: map[string]string{managedBy: manager}}
}

func (o objectsOf) volume(name, manager string) error {
	_, err := o.volumes.CreateVolume(o.t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{Meta: meta(name, manager),
		Spec: &pb.VolumeSpec{Pool: "local", SizeBytes: 1 << 30}}})
	return err
}

func (o objectsOf) host(name, manager string) error {
	_, err := o.hosts.CreateHost(o.t.Context(), &pb.CreateHostRequest{Host: &pb.Host{Meta: meta(name, manager),
		Spec: &pb.HostSpec{Initiators: []string{"iqn.2026-11.test:" + name}, Chap: &pb.ChapCredentials{Password: "a secret of 16 b"}}}})
	return err
}

func (o objectsOf) target(name, manager string, hosts ...string) error {
	_, err := o.targets.CreateTarget(o.t.Context(), &pb.CreateTargetRequest{Target: &pb.Target{Meta: meta(name, manager),
		Spec: &pb.TargetSpec{GatewayPool: "default", Paths: 2, Hosts: hosts}}})
	return err
}

func (o objectsOf) snapshot(name, manager, of string) error {
	_, err := o.snapshots.CreateSnapshot(o.t.Context(), &pb.CreateSnapshotRequest{Snapshot: &pb.Snapshot{Meta: meta(name, manager),
		Spec: &pb.SnapshotSpec{Volume: of}}})
	return err
}

// updateVolume stores a change of the volume, as a whole or by mask.
func (o objectsOf) updateVolume(name string, change func(*pb.Volume), mask ...string) error {
	got, err := o.volumes.GetVolume(o.t.Context(), &pb.GetVolumeRequest{Name: name})
	if err != nil {
		return err
	}
	request := &pb.UpdateVolumeRequest{Volume: proto.Clone(got.GetVolume()).(*pb.Volume)}
	if change(request.Volume); len(mask) > 0 {
		request.UpdateMask = &fieldmaskpb.FieldMask{Paths: mask}
	}
	_, err = o.volumes.UpdateVolume(o.t.Context(), request)
	return err
}

func (o objectsOf) updateTarget(name string, change func(*pb.Target)) error {
	got, err := o.targets.GetTarget(o.t.Context(), &pb.GetTargetRequest{Name: name})
	if err != nil {
		return err
	}
	change(got.GetTarget())
	_, err = o.targets.UpdateTarget(o.t.Context(), &pb.UpdateTargetRequest{Target: got.GetTarget()})
	return err
}

func (o objectsOf) updateHost(name string, change func(*pb.Host)) error {
	got, err := o.hosts.GetHost(o.t.Context(), &pb.GetHostRequest{Name: name})
	if err != nil {
		return err
	}
	change(got.GetHost())
	_, err = o.hosts.UpdateHost(o.t.Context(), &pb.UpdateHostRequest{Host: got.GetHost()})
	return err
}

func (o objectsOf) deleteVolume(name string) error {
	_, err := o.volumes.DeleteVolume(o.t.Context(), &pb.DeleteVolumeRequest{Name: name})
	return err
}

func (o objectsOf) deleteHost(name string) error {
	_, err := o.hosts.DeleteHost(o.t.Context(), &pb.DeleteHostRequest{Name: name})
	return err
}

func (o objectsOf) deleteSnapshot(name string) error {
	_, err := o.snapshots.DeleteSnapshot(o.t.Context(), &pb.DeleteSnapshotRequest{Name: name})
	return err
}

// everyKind creates an object of each kind that the CSI driver changes, and the objects that these need.
func everyKind(t *testing.T, s *system) (admin, csi objectsOf) {
	t.Helper()
	connection := s.as("admin")
	if _, err := pb.NewStoragePoolServiceClient(connection).CreateStoragePool(t.Context(), &pb.CreateStoragePoolRequest{StoragePool: &pb.StoragePool{
		Meta: &pb.ObjectMeta{Name: "local"}, Spec: &pb.StoragePoolSpec{Kind: &pb.StoragePoolSpec_Local{
			Local: &pb.LocalPool{Node: "n1", Directory: "/pool"}}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewFabricServiceClient(connection).CreateFabric(t.Context(), fabric("red")); err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewGatewayPoolServiceClient(connection).CreateGatewayPool(t.Context(), &pb.CreateGatewayPoolRequest{
		GatewayPool: &pb.GatewayPool{Meta: &pb.ObjectMeta{Name: "default"}, Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red"}}}}); err != nil {
		t.Fatal(err)
	}
	admin, csi = objects(t, connection), objects(t, s.as("csi"))
	for _, err := range []error{admin.volume("payroll", "people"), admin.host("web", "people"), admin.target("shop", "people"),
		admin.snapshot("monday", "people", "payroll"), csi.volume("pvc-1", csiDriver), csi.host("node-1", csiDriver),
		csi.target("node-1", csiDriver, "node-1"), csi.snapshot("snap-1", csiDriver, "pvc-1")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return admin, csi
}

// A stolen certificate of the CSI driver must neither delete nor take over an object that the driver did not create.
func TestTheCSIDriverChangesItsOwnObjectsOnly(t *testing.T) {
	s := start(t)
	_, csi := everyKind(t, s)
	for what, err := range map[string]error{
		"create a volume without the mark":   csi.volume("v", "people"),
		"create a host without the mark":     csi.host("h", "people"),
		"create a target without the mark":   csi.target("t", "people"),
		"create a snapshot without the mark": csi.snapshot("x", "people", "pvc-1"),
		"delete a volume of people":          csi.deleteVolume("payroll"),
		"delete a host of people":            csi.deleteHost("web"),
		"delete a snapshot of people":        csi.deleteSnapshot("monday"),
		"replace a secret of people": csi.updateHost("web", func(h *pb.Host) {
			h.Spec.Chap = &pb.ChapCredentials{Password: "a secret of mine"}
		}),
		"admit its initiator to a host of people": csi.updateHost("web", func(h *pb.Host) {
			h.Spec.Initiators = append(h.Spec.Initiators, "iqn.2026-11.test:thief")
		}),
		"mark a volume of people as its own": csi.updateVolume("payroll", func(v *pb.Volume) { v.Meta.Labels[managedBy] = csiDriver }),
		"mark a volume by mask":              csi.updateVolume("payroll", func(v *pb.Volume) { v.Meta.Labels[managedBy] = csiDriver }, "meta.labels"),
		"change how a volume of people is reclaimed": csi.updateVolume("payroll", func(v *pb.Volume) {
			v.Spec.ReclaimPolicy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
		}),
		"change the paths of a target of people": csi.updateTarget("shop", func(t *pb.Target) { t.Spec.Paths = 1 }),
		"take the mark off its own volume":       csi.updateVolume("pvc-1", func(v *pb.Volume) { v.Meta.Labels[managedBy] = "people" }),
		"mark its own volume as a resource's":    csi.updateVolume("pvc-1", func(v *pb.Volume) { v.Meta.Labels["sluice.dev/uid"] = "u" }),
	} {
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(status.Convert(err).Message(), "the CSI driver may not") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTheCSIDriverDoesWhatItNeedsWithItsOwnObjectsAndWithThoseThatItPublishes(t *testing.T) {
	s := start(t)
	_, csi := everyKind(t, s)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"note on a volume of people that it is published", func() error {
			return csi.updateVolume("payroll", func(v *pb.Volume) { v.Meta.Labels["published."+csiDriver+"/0123"] = "node-1" }, "meta.labels")
		}},
		{"grow a volume of people", func() error {
			return csi.updateVolume("payroll", func(v *pb.Volume) { v.Spec.SizeBytes = 2 << 30 }, "spec.size_bytes")
		}},
		{"limit a volume of people", func() error {
			return csi.updateVolume("payroll", func(v *pb.Volume) { v.Spec.Qos = &pb.Qos{Iops: 100} }, "spec.qos")
		}},
		{"show a volume in a target of people", func() error {
			return csi.updateTarget("shop", func(t *pb.Target) {
				t.Spec.Hosts, t.Spec.Luns = []string{"node-1"}, []*pb.TargetLun{{Id: 1, Volume: "pvc-1"}}
			})
		}},
		{"hide it again", func() error {
			return csi.updateTarget("shop", func(t *pb.Target) { t.Spec.Hosts, t.Spec.Luns = nil, nil })
		}},
		{"change its own host", func() error {
			return csi.updateHost("node-1", func(h *pb.Host) { h.Spec.Chap = &pb.ChapCredentials{Password: "another secret of"} })
		}},
		{"change its own target", func() error {
			return csi.updateTarget("node-1", func(t *pb.Target) { t.Spec.Paths, t.Spec.Hosts = 1, nil })
		}},
		{"delete its own host", func() error { return csi.deleteHost("node-1") }},
		{"delete its own snapshot", func() error { return csi.deleteSnapshot("snap-1") }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}
