package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func meta(name string) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: name, ResourceVersion: 7, Labels: map[string]string{"app": "shop"}}
}

// whole returns objects of each kind; together they have each field of a specification that a caller can set, except secrets.
func whole() []proto.Message {
	volume := func(name string, source *pb.VolumeSource) *pb.Volume {
		return &pb.Volume{Meta: meta(name), Spec: &pb.VolumeSpec{Pool: "pool", SizeBytes: 1<<20 + 4096, BlockSize: 4096, Source: source,
			WriteCache: pb.WriteCache_WRITE_CACHE_ENABLED, ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_TRASH,
			Qos: &pb.Qos{Iops: 5, IopsBurst: 6, BytesPerSecond: 1 << 20, BytesBurst: 1 << 21}}}
	}
	return []proto.Message{
		volume("a", &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: "s"}}),
		volume("b", &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: "v.dotted"}}),
		volume("c", &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: "old"}}),
		&pb.Snapshot{Meta: meta("s"), Spec: &pb.SnapshotSpec{Volume: "a", ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN}},
		&pb.Target{Meta: meta("t"), Spec: &pb.TargetSpec{Iqn: "iqn.2026-11.org.example:t", GatewayPool: "default", Paths: 3,
			Luns: []*pb.TargetLun{{Id: 2, Volume: "a", ReadOnly: true}}, Hosts: []string{"web"}}},
		&pb.Host{Meta: meta("web"), Spec: &pb.HostSpec{Initiators: []string{"iqn.2026-11.org.example:web"}, AllowUnauthenticated: true,
			Chap: &pb.ChapCredentials{Username: "web"}, MutualChap: &pb.ChapCredentials{}, Switches: []string{"red/leaf-1"}, MaxSessions: 5}},
		&pb.StoragePool{Meta: meta("files"), Spec: &pb.StoragePoolSpec{WarnPercent: 70, Adoptions: 2,
			Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: "n", Directory: "/srv"}}}},
		&pb.StoragePool{Meta: meta("disks"), Spec: &pb.StoragePoolSpec{WarnPercent: 85,
			Kind: &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{Node: "n", Devices: []string{"/dev/sdb"}}}}},
		&pb.StoragePool{Meta: meta("ceph"), Spec: &pb.StoragePoolSpec{GatewayPools: []string{"default"}, AdoptableImages: []string{"old-*"},
			Kind: &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Pool: "rbd",
				RadosNamespace: "one", DataPool: "data"}}}},
		&pb.GatewayPool{Meta: meta("default"), Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red", "blue"}, MaxSessionsPerGateway: 9}},
		&pb.Gateway{Meta: meta("gw-1"), Spec: &pb.GatewaySpec{GatewayPool: "default", Node: "n", ForwardingAddress: "[2001:db8::1]:3261",
			Weight: 9, Cordoned: true, Portals: []*pb.Portal{
				{Listen: "192.0.2.1:3260", Advertised: "198.51.100.1:3999", Fabric: "red", Switch: "leaf-1"},
				{Listen: "[2001:db8::2]:3260", Advertised: "[2001:db8::2]:3260", Fabric: "red"},
				{Listen: "203.0.113.1:4000", Advertised: "203.0.113.1:4000", Fabric: "blue"}}}},
		&pb.Fabric{Meta: meta("red"), Spec: &pb.FabricSpec{Subnets: []string{"192.0.2.0/24"}, Switches: []string{"a", "b"},
			Links: []*pb.FabricLink{{A: "a", B: "b", Cost: 2}}}},
	}
}

func written(t *testing.T, object proto.Message) string {
	t.Helper()
	fields, err := Write(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// noSecret fails for any reference to a Secret.
func noSecret(t *testing.T) SecretReader {
	return func(field string, ref SecretKey) (string, error) {
		t.Errorf("%s refers to %v", field, ref)
		return "", nil
	}
}

func TestAnObjectThatIsWrittenIsReadAsItWas(t *testing.T) {
	for _, object := range whole() {
		text := written(t, object)
		got, unused, err := Read([]byte(text), noSecret(t))
		if err != nil || len(unused) > 0 || !proto.Equal(got, object) {
			t.Errorf("%s:\n%v\nbecame\n%v (%v, %v)", text, object, got, unused, err)
		}
	}
}

// missing records for each field of a message, and of the messages in it, whether any object so far has it.
func missing(message protoreflect.Message, all map[protoreflect.FullName]bool) {
	for i := range message.Descriptor().Fields().Len() {
		field := message.Descriptor().Fields().Get(i)
		if _, known := all[field.FullName()]; !known {
			all[field.FullName()] = true
		}
		if !message.Has(field) {
			continue
		}
		all[field.FullName()] = false
		switch {
		case field.Message() == nil:
		case field.IsList():
			missing(message.Get(field).List().Get(0).Message(), all)
		default:
			missing(message.Get(field).Message(), all)
		}
	}
}

func TestEachFieldOfASpecificationIsConverted(t *testing.T) {
	secrets := map[protoreflect.FullName]bool{"sluice.v1.ChapCredentials.password": true, "sluice.v1.ChapCredentials.password_set": true,
		"sluice.v1.RbdPool.key": true}
	all := map[protoreflect.FullName]bool{}
	for _, object := range whole() {
		missing(object.ProtoReflect().Get(object.ProtoReflect().Descriptor().Fields().ByName("spec")).Message(), all)
	}
	for name, lacks := range all {
		if lacks && !secrets[name] {
			t.Errorf("no object of this test has %s: add it there, and to this package", name)
		}
	}
}

func TestAnObjectThatTheOperatorMadeHasTheNamesOfItsResource(t *testing.T) {
	target := &pb.Target{Meta: &pb.ObjectMeta{Name: "shop.t", Labels: map[string]string{LabelResource: "shop/t"}},
		Spec: &pb.TargetSpec{Iqn: "iqn.2026-11.org.example:t", GatewayPool: "default", Luns: []*pb.TargetLun{{Volume: "shop.orders"}},
			Hosts: []string{"shop.web"}}}
	text := written(t, target)
	for _, want := range []string{`"namespace":"shop"`, `"name":"t"`, `"volume":"orders"`, `"hosts":["web"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	got, _, err := Read([]byte(text), noSecret(t))
	if err != nil || got.(*pb.Target).GetMeta().GetName() != "shop.t" || !proto.Equal(got.(*pb.Target).GetSpec(), target.GetSpec()) {
		t.Errorf("%s became %v, %v", text, got, err)
	}
	// A resource cannot name an object of another namespace, so the object keeps its complete name.
	target.Spec.Hosts = []string{"other.web"}
	text = written(t, target)
	got, _, err = Read([]byte(text), noSecret(t))
	if err != nil || strings.Contains(text, "namespace") || !proto.Equal(got.(*pb.Target).GetSpec(), target.GetSpec()) {
		t.Errorf("%s became %v, %v", text, got, err)
	}
}

func TestSecretsAreReadOfTheNamespaceWithTheDefaultKey(t *testing.T) {
	const text = `{"apiVersion":"sluice.dev/v1alpha1","kind":"Host","metadata":{"namespace":"shop","name":"web"},"spec":{"initiators":["i"],
		"chap":{"secretRef":{"name":"one"}},"mutualChap":{"secretRef":{"name":"two","key":"word"}}}}`
	secrets := map[SecretKey]string{{"shop", "one", "password"}: "first\n", {"shop", "two", "word"}: "second"}
	got, _, err := Read([]byte(text), func(_ string, ref SecretKey) (string, error) { return secrets[ref], nil })
	host, _ := got.(*pb.Host)
	if err != nil || host.GetSpec().GetChap().GetPassword() != "first" || host.GetSpec().GetMutualChap().GetPassword() != "second" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestInvalidResourcesAreRefusedBeforeTheAPI(t *testing.T) {
	for text, word := range map[string]string{
		`{"kind":"Volume","metadata":{"name":"a"},"spec":{"pool":"p","size":"1Gi","reclaimPolicy":"Keep"}}`:     "Delete, Retain, Trash",
		`{"kind":"Volume","metadata":{"name":"a"},"spec":{"pool":"p","size":"1Gi","writeCache":"On"}}`:          "Disabled, Enabled",
		`{"kind":"Volume","metadata":{"name":"a"},"spec":{"pool":"p","size":"1500m"}}`:                          "whole bytes",
		`{"kind":"Volume","metadata":{"name":"a"},"spec":{"pool":"p","size":"1Gi","source":{}}}`:                "exactly one",
		`{"kind":"Volume","metadata":{"name":"a"},"spec":{"pool":"p","sizeBytes":1}}`:                           "sizeBytes",
		`{"kind":"Volume","spec":{"pool":"p","size":"1Gi"}}`:                                                    "metadata.name",
		`{"kind":"Fabric","metadata":{"namespace":"n","name":"a"}}`:                                             "no namespace",
		`{"kind":"Fabric","metadata":{"name":"a","resourceVersion":"x"}}`:                                       "resourceVersion",
		`{"kind":"StoragePool","metadata":{"name":"a"},"spec":{}}`:                                              "local and rbd",
		`{"kind":"Vulome","metadata":{"name":"a"}}`:                                                             "StoragePool",
		`{"kind":"Gateway","metadata":{"name":"a"},"spec":{"gatewayPool":"p","portals":[{"fabric":"red"}]}}`:    "in Kubernetes",
		`{"kind":"Gateway","metadata":{"name":"a"},"spec":{"gatewayPool":"p","drain":true,"portals":[]}}`:       "sluicectl gateway drain",
		`{"kind":"Gateway","metadata":{"name":"a"},"spec":{"gatewayPool":"p","maintenance":true,"portals":[]}}`: "sluicectl gateway drain",
	} {
		if _, _, err := Read([]byte(text), noSecret(t)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFieldsThatOnlyTheOperatorUsesAreNamed(t *testing.T) {
	const text = `{"kind":"GatewayPool","metadata":{"name":"a"},"spec":{"replicas":2,"portals":[{"fabric":"red"}],"template":{"image":"i"}}}`
	got, unused, err := Read([]byte(text), noSecret(t))
	if err != nil || strings.Join(unused, " ") != "spec.replicas spec.template" || len(got.(*pb.GatewayPool).GetSpec().GetFabrics()) != 1 {
		t.Errorf("%v, %v, %v", got, unused, err)
	}
}

func TestEnumerationsAreReadAsWords(t *testing.T) {
	for value, want := range map[pb.GatewayHealth]string{
		pb.GatewayHealth_GATEWAY_HEALTH_DRAINED: "Drained", pb.GatewayHealth_GATEWAY_HEALTH_UNSPECIFIED: "", 77: "",
	} {
		if got := Word(value); got != want {
			t.Errorf("%v reads %q, not %q", value, got, want)
		}
	}
}
