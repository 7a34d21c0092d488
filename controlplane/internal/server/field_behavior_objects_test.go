package server_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// whole returns objects of each kind with every field that a caller can set; of two exclusive fields, one object has each. They
// name the objects of `shortest`.
func whole() []proto.Message {
	chap := func(name, password string) *pb.ChapCredentials {
		return &pb.ChapCredentials{Username: name, Password: password}
	}
	meta := func(name string) *pb.ObjectMeta {
		return &pb.ObjectMeta{Name: name, ResourceVersion: 1, Labels: map[string]string{"made-by": "test"}}
	}
	volume := func(name string, source *pb.VolumeSource) *pb.Volume {
		return &pb.Volume{Meta: meta(name), Spec: &pb.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20, BlockSize: 512,
			WriteCache: pb.WriteCache_WRITE_CACHE_DISABLED, ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_DELETE, Source: source,
			Qos: &pb.Qos{Iops: 5, IopsBurst: 6, BytesPerSecond: 1 << 20, BytesBurst: 1 << 21}}}
	}
	return []proto.Message{
		&pb.Fabric{Meta: meta("blue"), Spec: &pb.FabricSpec{Subnets: []string{"192.0.2.0/24"}, Switches: []string{"a", "b"},
			Links: []*pb.FabricLink{{A: "a", B: "b", Cost: 2}}}},
		&pb.GatewayPool{Meta: meta("other"), Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red"}, MaxSessionsPerGateway: 7}},
		&pb.Gateway{Meta: meta("gw-2"), Spec: &pb.GatewaySpec{GatewayPool: "default", Node: "m", ForwardingAddress: "192.0.2.2:3261",
			Weight: 9, Cordoned: true, Portals: []*pb.Portal{{Listen: "192.0.2.2:3260", Advertised: "198.51.100.2:3260", Fabric: "red",
				Switch: "red"}}}},
		&pb.StoragePool{Meta: meta("files"), Spec: &pb.StoragePoolSpec{WarnPercent: 70, Adoptions: 1,
			Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: "n", Directory: "/srv/other"}}}},
		&pb.StoragePool{Meta: meta("disks"), Spec: &pb.StoragePoolSpec{
			Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: "n", Devices: []string{"/dev/sdb"}}}}},
		&pb.StoragePool{Meta: meta("ceph"), Spec: &pb.StoragePoolSpec{GatewayPools: []string{"default"}, AdoptableImages: []string{"old-*"},
			Kind: &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Key: "the-key", Pool: "rbd",
				RadosNamespace: "one", DataPool: "data"}}}},
		volume("copy-1", &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: "then"}}),
		volume("copy-2", &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: "orders"}}),
		volume("copy-3", nil),
		&pb.Snapshot{Meta: meta("later"), Spec: &pb.SnapshotSpec{Volume: "orders", ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN}},
		&pb.Host{Meta: meta("web-2"), Spec: &pb.HostSpec{Initiators: []string{"iqn.2026-11.org.example:web-2"},
			Chap: chap("web-2", "open-sesame-123"), MutualChap: chap("target", "sesame-open-123"), AllowUnauthenticated: true,
			Switches: []string{"red/red"}, MaxSessions: 5}},
		&pb.Target{Meta: meta("db-2"), Spec: &pb.TargetSpec{Iqn: "iqn.2026-11.org.example:db-2", GatewayPool: "default", Paths: 3,
			Luns: []*pb.TargetLun{{Id: 1, Volume: "orders", ReadOnly: true}}, Hosts: []string{"web"}}},
	}
}

// changes returns the requests that create and update these objects. None of them changes anything.
func changes() []proto.Message {
	var requests []proto.Message
	for _, object := range whole() {
		for name, method := range managed() {
			kind := string(object.ProtoReflect().Descriptor().Name())
			if name != "sluice.v1.Create"+protoreflect.FullName(kind)+"Request" && name != "sluice.v1.Update"+protoreflect.FullName(kind)+"Request" {
				continue
			}
			request := simple(method).ProtoReflect()
			request.Set(objectField(request.Descriptor()), protoreflect.ValueOfMessage(object.ProtoReflect()))
			if mask := request.Descriptor().Fields().ByName("update_mask"); mask != nil {
				all := &fieldmaskpb.FieldMask{Paths: []string{"spec", "meta.labels"}}
				request.Set(mask, protoreflect.ValueOfMessage(all.ProtoReflect()))
			}
			requests = append(requests, proto.Clone(request.Interface()))
		}
	}
	return requests
}

// objectField returns the field of a message that contains an object with metadata; nil: none.
func objectField(message protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if field.Message() != nil && !field.IsList() && !field.IsMap() && field.Message().Fields().ByName("meta") != nil {
			return field
		}
	}
	return nil
}

// Values that a caller writes into OUTPUT_ONLY fields in this test.
const (
	clientText   = "set-by-the-client"
	clientNumber = 4242
)

// pollution returns a value for a field that the control plane never assigns.
func pollution(field protoreflect.FieldDescriptor, empty func() protoreflect.Value) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(clientText)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(values.Len() - 1).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(clientNumber)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(clientNumber)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(clientNumber)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(clientNumber)
	case protoreflect.MessageKind:
		message := empty()
		for i := range message.Message().Descriptor().Fields().Len() {
			pollute(message.Message(), message.Message().Descriptor().Fields().Get(i))
		}
		return message
	}
	panic("no value for fields of the kind " + field.Kind().String())
}

func pollute(message protoreflect.Message, field protoreflect.FieldDescriptor) {
	if field.IsMap() {
		panic("no value for the map " + field.FullName())
	}
	if field.IsList() {
		list := message.Mutable(field).List()
		list.Append(pollution(field, list.NewElement))
		return
	}
	message.Set(field, pollution(field, func() protoreflect.Value { return message.NewField(field) }))
}

// polluted lists the values of an answer that the caller has set. A bool counts if it differs from the answer to a clean request.
func polluted(answer, clean protoreflect.Message, at string) []string {
	var found []string
	for i := range answer.Descriptor().Fields().Len() {
		field := answer.Descriptor().Fields().Get(i)
		here := at + "." + string(field.Name())
		switch {
		case field.IsMap():
		case field.IsList():
			if answer.Get(field).List().Len() != clean.Get(field).List().Len() {
				found = append(found, here)
			}
		case field.Message() != nil:
			if answer.Has(field) {
				found = append(found, polluted(answer.Get(field).Message(), clean.Get(field).Message(), here)...)
			}
		case field.Kind() == protoreflect.BoolKind:
			if answer.Get(field).Bool() != clean.Get(field).Bool() {
				found = append(found, here)
			}
		case answer.Get(field).Equal(pollution(field, nil)):
			found = append(found, here)
		}
	}
	return found
}

func TestOutputOnlyFieldsInRequestsAreIgnored(t *testing.T) {
	s := start(t)
	s.shortest()
	proven := map[protoreflect.FullName]bool{}
	for _, request := range changes() {
		kind := string(request.ProtoReflect().Descriptor().Name())
		if strings.HasPrefix(kind, "Update") {
			continue // the objects do not exist
		}
		clean, err := s.send(request)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		dirty := proto.Clone(request)
		visit(dirty.ProtoReflect(), nil, func(inside protoreflect.Message, at place) {
			if last := at[len(at)-1].field; has(last, annotations.FieldBehavior_OUTPUT_ONLY) {
				pollute(inside, last)
				proven[last.FullName()] = true
			}
		})
		s.unpolluted(dirty, clean, kind)
	}
	for name, field := range requestFields() {
		if has(field, annotations.FieldBehavior_OUTPUT_ONLY) && !proven[name] {
			t.Errorf("%s is OUTPUT_ONLY, and no request of this test has it", name)
		}
	}
}

// unpolluted sends a request, and asserts that the returned object has none of the values that the caller wrote.
func (s *system) unpolluted(dirty, clean proto.Message, what string) {
	s.t.Helper()
	answer, err := s.send(dirty)
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
		return
	}
	object := func(response proto.Message) protoreflect.Message {
		return response.ProtoReflect().Get(objectField(response.ProtoReflect().Descriptor())).Message()
	}
	for _, at := range polluted(object(answer), object(clean), what) {
		s.t.Errorf("%s is OUTPUT_ONLY, and the caller has set it", at)
	}
}

func TestAnUpdateIgnoresOutputOnlyFields(t *testing.T) {
	s := start(t)
	all := s.shortest()
	for _, object := range []proto.Message{all.fabric, all.gatewayPool, all.gateway, all.storagePool, all.volume, all.snapshot, all.host, all.target} {
		kind := object.ProtoReflect().Descriptor().Name()
		request := simple(managed()["sluice.v1.Update"+protoreflect.FullName(kind)+"Request"]).ProtoReflect()
		request.Set(objectField(request.Descriptor()), protoreflect.ValueOfMessage(proto.Clone(object).ProtoReflect()))
		clean, err := s.send(request.Interface())
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		visit(request, nil, func(inside protoreflect.Message, at place) {
			if last := at[len(at)-1].field; has(last, annotations.FieldBehavior_OUTPUT_ONLY) {
				inside.Clear(last)
				pollute(inside, last)
			}
		})
		s.unpolluted(request.Interface(), clean, string(kind))
	}
}

// exchanges change each immutable field of an object of `shortest`, or of the pool ceph.
var exchanges = map[protoreflect.FullName]struct {
	field  string
	change func(*shortest, *pb.StoragePool) proto.Message
}{
	"sluice.v1.VolumeSpec.pool": {"spec.pool", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.volume.Spec.Pool = "ceph"
		return &pb.UpdateVolumeRequest{Volume: all.volume}
	}},
	"sluice.v1.VolumeSpec.block_size": {"spec.blockSize", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.volume.Spec.BlockSize = 4096
		return &pb.UpdateVolumeRequest{Volume: all.volume}
	}},
	"sluice.v1.VolumeSpec.source": {"spec.source", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.volume.Spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: "then"}}
		return &pb.UpdateVolumeRequest{Volume: all.volume}
	}},
	"sluice.v1.SnapshotSpec.volume": {"spec.volume", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.snapshot.Spec.Volume = "copy-3"
		return &pb.UpdateSnapshotRequest{Snapshot: all.snapshot}
	}},
	"sluice.v1.LocalPool.node": {"spec.local.node", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.storagePool.Spec.GetLocal().Node = "m"
		return &pb.UpdateStoragePoolRequest{StoragePool: all.storagePool}
	}},
	"sluice.v1.LocalPool.directory": {"spec.local.directory", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.storagePool.Spec.GetLocal().Directory = "/srv/other"
		return &pb.UpdateStoragePoolRequest{StoragePool: all.storagePool}
	}},
	"sluice.v1.RbdPool.pool": {"spec.rbd.pool", func(_ *shortest, ceph *pb.StoragePool) proto.Message {
		ceph.Spec.GetRbd().Pool = "another"
		return &pb.UpdateStoragePoolRequest{StoragePool: ceph}
	}},
	"sluice.v1.RbdPool.rados_namespace": {"spec.rbd.radosNamespace", func(_ *shortest, ceph *pb.StoragePool) proto.Message {
		ceph.Spec.GetRbd().RadosNamespace = "another"
		return &pb.UpdateStoragePoolRequest{StoragePool: ceph}
	}},
	"sluice.v1.GatewaySpec.gateway_pool": {"spec.gatewayPool", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.gateway.Spec.GatewayPool = "other"
		return &pb.UpdateGatewayRequest{Gateway: all.gateway}
	}},
	"sluice.v1.TargetSpec.iqn": {"spec.iqn", func(all *shortest, _ *pb.StoragePool) proto.Message {
		all.target.Spec.Iqn = "iqn.2026-11.org.example:another"
		return &pb.UpdateTargetRequest{Target: all.target}
	}},
}

func TestAChangeOfAnImmutableFieldIsRefusedByItsName(t *testing.T) {
	s := start(t)
	all := s.shortest()
	for _, object := range whole() {
		var request proto.Message
		switch o := object.(type) {
		case *pb.GatewayPool:
			request = &pb.CreateGatewayPoolRequest{GatewayPool: o}
		case *pb.StoragePool:
			request = &pb.CreateStoragePoolRequest{StoragePool: o}
		case *pb.Volume:
			request = &pb.CreateVolumeRequest{Volume: o}
		default:
			continue
		}
		if _, err := s.send(request); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := pb.NewStoragePoolServiceClient(s.admin()).GetStoragePool(t.Context(), &pb.GetStoragePoolRequest{Name: "ceph"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(exchanges)) {
		exchange := exchanges[name]
		kept := *all
		kept.volume, kept.snapshot = proto.CloneOf(all.volume), proto.CloneOf(all.snapshot)
		kept.storagePool, kept.gateway, kept.target = proto.CloneOf(all.storagePool), proto.CloneOf(all.gateway), proto.CloneOf(all.target)
		_, err := s.send(exchange.change(&kept, proto.CloneOf(stored.GetStoragePool())))
		wantField(t, err, codes.InvalidArgument, exchange.field)
	}
	for name, field := range requestFields() {
		if _, changed := exchanges[name]; changed != has(field, annotations.FieldBehavior_IMMUTABLE) {
			t.Errorf("%s is IMMUTABLE: %v; this test changes it: %v", name, !changed, changed)
		}
	}
}
