package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// shortest has one object of each kind, with only the fields that have no default, and a label.
type shortest struct {
	fabric      *pb.Fabric
	gatewayPool *pb.GatewayPool
	gateway     *pb.Gateway
	storagePool *pb.StoragePool
	volume      *pb.Volume
	snapshot    *pb.Snapshot
	host        *pb.Host
	target      *pb.Target
}

func named(name string) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: name, Labels: map[string]string{"made-by": "test"}}
}

// made returns the object of an answer.
func made[R any](t *testing.T) func(response R, err error) R {
	return func(response R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
}

func (s *system) shortest() *shortest {
	t, ctx, admin, all := s.t, s.t.Context(), s.as("admin"), &shortest{}
	t.Helper()
	all.fabric = made[*pb.CreateFabricResponse](t)(pb.NewFabricServiceClient(admin).CreateFabric(ctx, &pb.CreateFabricRequest{
		Fabric: &pb.Fabric{Meta: named("red"), Spec: &pb.FabricSpec{}}})).GetFabric()
	all.gatewayPool = made[*pb.CreateGatewayPoolResponse](t)(pb.NewGatewayPoolServiceClient(admin).CreateGatewayPool(ctx,
		&pb.CreateGatewayPoolRequest{GatewayPool: &pb.GatewayPool{Meta: named("default"),
			Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red"}}}})).GetGatewayPool()
	all.gateway = made[*pb.CreateGatewayResponse](t)(pb.NewGatewayServiceClient(admin).CreateGateway(ctx, &pb.CreateGatewayRequest{
		Gateway: &pb.Gateway{Meta: named("gw-1"), Spec: &pb.GatewaySpec{GatewayPool: "default", Node: "n",
			ForwardingAddress: "192.0.2.1:3261", Portals: []*pb.Portal{{Listen: "192.0.2.1:3260", Fabric: "red"}}}}})).GetGateway()
	all.storagePool = made[*pb.CreateStoragePoolResponse](t)(pb.NewStoragePoolServiceClient(admin).CreateStoragePool(ctx,
		&pb.CreateStoragePoolRequest{StoragePool: &pb.StoragePool{Meta: named("pool"), Spec: &pb.StoragePoolSpec{
			Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: "n", Directory: "/srv"}}}}})).GetStoragePool()
	all.volume = made[*pb.CreateVolumeResponse](t)(pb.NewVolumeServiceClient(admin).CreateVolume(ctx, &pb.CreateVolumeRequest{
		Volume: &pb.Volume{Meta: named("orders"), Spec: &pb.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20}}})).GetVolume()
	all.snapshot = made[*pb.CreateSnapshotResponse](t)(pb.NewSnapshotServiceClient(admin).CreateSnapshot(ctx, &pb.CreateSnapshotRequest{
		Snapshot: &pb.Snapshot{Meta: named("then"), Spec: &pb.SnapshotSpec{Volume: "orders"}}})).GetSnapshot()
	web := host("open-sesame-123")
	web.Meta = named("web")
	all.host = made[*pb.CreateHostResponse](t)(pb.NewHostServiceClient(admin).CreateHost(ctx,
		&pb.CreateHostRequest{Host: web})).GetHost()
	all.target = made[*pb.CreateTargetResponse](t)(pb.NewTargetServiceClient(admin).CreateTarget(ctx, &pb.CreateTargetRequest{
		Target: &pb.Target{Meta: named("db"), Spec: &pb.TargetSpec{GatewayPool: "default"}}})).GetTarget()
	return all
}

func TestAFieldThatIsNotGivenHasItsDocumentedDefault(t *testing.T) {
	s := start(t)
	all := s.shortest()
	for what, c := range map[string]struct{ got, want any }{
		"FabricSpec.switches":                      {all.fabric.GetSpec().GetSwitches()[0], "red"},
		"GatewayPoolSpec.max_sessions_per_gateway": {all.gatewayPool.GetSpec().GetMaxSessionsPerGateway(), int32(4096)},
		"GatewaySpec.weight":                       {all.gateway.GetSpec().GetWeight(), int32(100)},
		"Portal.advertised":                        {all.gateway.GetSpec().GetPortals()[0].GetAdvertised(), "192.0.2.1:3260"},
		"Portal.switch":                            {all.gateway.GetSpec().GetPortals()[0].GetSwitch(), ""},
		"StoragePoolSpec.warn_percent":             {all.storagePool.GetSpec().GetWarnPercent(), int32(85)},
		"VolumeSpec.block_size":                    {all.volume.GetSpec().GetBlockSize(), int32(512)},
		"VolumeSpec.write_cache":                   {all.volume.GetSpec().GetWriteCache(), pb.WriteCache_WRITE_CACHE_DISABLED},
		"VolumeSpec.reclaim_policy":                {all.volume.GetSpec().GetReclaimPolicy(), pb.ReclaimPolicy_RECLAIM_POLICY_DELETE},
		"SnapshotSpec.reclaim_policy":              {all.snapshot.GetSpec().GetReclaimPolicy(), pb.ReclaimPolicy_RECLAIM_POLICY_DELETE},
		"HostSpec.max_sessions":                    {all.host.GetSpec().GetMaxSessions(), int32(64)},
		"TargetSpec.iqn":                           {all.target.GetSpec().GetIqn(), "iqn.2026-11.dev.sluice:db"},
		"TargetSpec.paths":                         {all.target.GetSpec().GetPaths(), int32(2)},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, not %v", what, c.got, c.want)
		}
	}
	linked, err := pb.NewFabricServiceClient(s.as("admin")).CreateFabric(t.Context(), &pb.CreateFabricRequest{Fabric: &pb.Fabric{
		Meta: named("blue"), Spec: &pb.FabricSpec{Switches: []string{"a", "b"}, Links: []*pb.FabricLink{{A: "a", B: "b"}}}}})
	if err != nil || linked.GetFabric().GetSpec().GetLinks()[0].GetCost() != 1 {
		t.Errorf("FabricLink.cost: %v, %v", linked, err)
	}
}

func TestAHostWithoutChapIsRefusedUnlessThatIsAllowed(t *testing.T) {
	s := start(t)
	hosts := pb.NewHostServiceClient(s.as("admin"))
	open := host("")
	open.Spec.Chap = nil
	_, err := hosts.CreateHost(t.Context(), &pb.CreateHostRequest{Host: open})
	wantField(t, err, codes.InvalidArgument, "spec.chap")
	open.Spec.AllowUnauthenticated = true
	if _, err := hosts.CreateHost(t.Context(), &pb.CreateHostRequest{Host: open}); err != nil {
		t.Error(err)
	}
}

func TestAnUpdateWithoutAMaskReplacesSpecAndLabels(t *testing.T) {
	s := start(t)
	all, ctx, admin := s.shortest(), t.Context(), s.as("admin")
	meta := func(of *pb.ObjectMeta) *pb.ObjectMeta { return &pb.ObjectMeta{Name: of.GetName()} } // any version, without labels
	check := func(kind string, now *pb.ObjectMeta, err error) {
		t.Helper()
		if err != nil || len(now.GetLabels()) != 0 {
			t.Errorf("%s: labels %v, %v", kind, now.GetLabels(), err)
		}
	}
	all.fabric.Spec.Subnets = []string{"192.0.2.0/24"}
	fabrics := pb.NewFabricServiceClient(admin)
	fabric, err := fabrics.UpdateFabric(ctx, &pb.UpdateFabricRequest{Fabric: &pb.Fabric{Meta: meta(all.fabric.GetMeta()), Spec: all.fabric.GetSpec()}})
	check("Fabric", fabric.GetFabric().GetMeta(), err)
	fabric, err = fabrics.UpdateFabric(ctx, &pb.UpdateFabricRequest{Fabric: &pb.Fabric{Meta: meta(all.fabric.GetMeta()), Spec: &pb.FabricSpec{}}})
	if err != nil || len(fabric.GetFabric().GetSpec().GetSubnets()) != 0 {
		t.Errorf("the subnets stay: %v, %v", fabric, err)
	}
	pool, err := pb.NewGatewayPoolServiceClient(admin).UpdateGatewayPool(ctx, &pb.UpdateGatewayPoolRequest{
		GatewayPool: &pb.GatewayPool{Meta: meta(all.gatewayPool.GetMeta()), Spec: all.gatewayPool.GetSpec()}})
	check("GatewayPool", pool.GetGatewayPool().GetMeta(), err)
	gateway, err := pb.NewGatewayServiceClient(admin).UpdateGateway(ctx, &pb.UpdateGatewayRequest{
		Gateway: &pb.Gateway{Meta: meta(all.gateway.GetMeta()), Spec: all.gateway.GetSpec()}})
	check("Gateway", gateway.GetGateway().GetMeta(), err)
	storage, err := pb.NewStoragePoolServiceClient(admin).UpdateStoragePool(ctx, &pb.UpdateStoragePoolRequest{
		StoragePool: &pb.StoragePool{Meta: meta(all.storagePool.GetMeta()), Spec: all.storagePool.GetSpec()}})
	check("StoragePool", storage.GetStoragePool().GetMeta(), err)
	volume, err := pb.NewVolumeServiceClient(admin).UpdateVolume(ctx, &pb.UpdateVolumeRequest{
		Volume: &pb.Volume{Meta: meta(all.volume.GetMeta()), Spec: all.volume.GetSpec()}})
	check("Volume", volume.GetVolume().GetMeta(), err)
	snapshot, err := pb.NewSnapshotServiceClient(admin).UpdateSnapshot(ctx, &pb.UpdateSnapshotRequest{
		Snapshot: &pb.Snapshot{Meta: meta(all.snapshot.GetMeta()), Spec: all.snapshot.GetSpec()}})
	check("Snapshot", snapshot.GetSnapshot().GetMeta(), err)
	web, err := pb.NewHostServiceClient(admin).UpdateHost(ctx, &pb.UpdateHostRequest{
		Host: &pb.Host{Meta: meta(all.host.GetMeta()), Spec: all.host.GetSpec()}})
	check("Host", web.GetHost().GetMeta(), err)
	target, err := pb.NewTargetServiceClient(admin).UpdateTarget(ctx, &pb.UpdateTargetRequest{
		Target: &pb.Target{Meta: meta(all.target.GetMeta()), Spec: all.target.GetSpec()}})
	check("Target", target.GetTarget().GetMeta(), err)
}

func TestADeletionWithoutOptionsDeletesAnyVersionAndUID(t *testing.T) {
	s := start(t)
	all, fabrics := s.shortest(), pb.NewFabricServiceClient(s.as("admin"))
	blue, err := fabrics.CreateFabric(t.Context(), fabric("blue"))
	if err != nil {
		t.Fatal(err)
	}
	remove := func(options *pb.DeleteOptions) error {
		_, err := fabrics.DeleteFabric(t.Context(), &pb.DeleteFabricRequest{Name: "blue", Options: options})
		return err
	}
	wantCode(t, remove(&pb.DeleteOptions{ResourceVersion: all.fabric.GetMeta().GetResourceVersion()}), codes.Aborted)
	wantCode(t, remove(&pb.DeleteOptions{Uid: all.fabric.GetMeta().GetUid()}), codes.Aborted)
	wantCode(t, remove(&pb.DeleteOptions{ResourceVersion: blue.GetFabric().GetMeta().GetResourceVersion()}), codes.OK)
	for _, options := range []*pb.DeleteOptions{nil, {}} {
		if _, err := fabrics.CreateFabric(t.Context(), fabric("blue")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, remove(options), codes.OK)
	}
}

func TestAnUpdateWithoutTheKeyOfAPoolKeepsIt(t *testing.T) {
	s := start(t)
	pools, ctx := pb.NewStoragePoolServiceClient(s.as("admin")), t.Context()
	ceph := func(key string) *pb.StoragePool {
		return &pb.StoragePool{Meta: &pb.ObjectMeta{Name: "ceph"}, Spec: &pb.StoragePoolSpec{Kind: &pb.StoragePoolSpec_Rbd{
			Rbd: &pb.RbdPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Key: key, Pool: "rbd"}}}}
	}
	_, err := pools.CreateStoragePool(ctx, &pb.CreateStoragePoolRequest{StoragePool: ceph("")})
	wantField(t, err, codes.InvalidArgument, "spec.rbd.key")
	if _, err := pools.CreateStoragePool(ctx, &pb.CreateStoragePoolRequest{StoragePool: ceph("the-key")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "another-key"} {
		if _, err := pools.UpdateStoragePool(ctx, &pb.UpdateStoragePoolRequest{StoragePool: ceph(want)}); err != nil {
			t.Fatal(err)
		}
		stored, err := s.store.StoragePools.Get(ctx, "ceph")
		if want == "" {
			want = "the-key"
		}
		if err != nil || stored.Spec.RBD.Key.Reveal() != want {
			t.Errorf("the stored key is not %s (%v)", want, err)
		}
	}
}
