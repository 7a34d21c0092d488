package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// lines is a log that may be read while it is written.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// system is a server with certificates on a separate port.
type system struct {
	t       *testing.T
	certs   string
	address string
	log     *lines
	store   *store.Store
	server  *server.Server
	// view follows nothing before a test calls its Run.
	view *view.Cache
	// faults watches nothing before a test calls followFindings.
	faults *api.Findings
	// administrator is the connection of admin, once it is needed.
	administrator *grpc.ClientConn
}

func start(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, certs: t.TempDir(), log: &lines{}}
	authority, err := certs.OpenAuthority(s.certs)
	if err != nil {
		t.Fatal(err)
	}
	leaves := []certs.Leaf{
		{File: "server", CommonName: "controlplane", Role: "server", Hosts: []string{"127.0.0.1"}},
		{File: "admin", CommonName: "ann", Role: "admin"}, {File: "reader", CommonName: "rob", Role: "read-only"},
		{File: "operator", CommonName: "opa", Role: "operator"}, {File: "csi", CommonName: "sluice-csi", Role: "csi"},
		{File: "gateway", CommonName: "gw-1", Role: "gateway"}, {File: "unknown", CommonName: "nik", Role: "king"},
	}
	for _, leaf := range leaves {
		if err := authority.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	config, err := server.ServerTLS(s.files("server"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.view = kept, view.New(kept, slog.Default())
	registry := prometheus.NewRegistry()
	facts := func(context.Context) findings.System { return findings.System{EmbeddedStore: true} }
	s.faults = api.NewFindings(kept, s.view, facts, registry)
	made, err := server.New(server.Options{Store: kept, View: s.view, TLS: config,
		Streams: pb.UnimplementedGatewayStreamServiceServer{}, Findings: s.faults,
		Loads:      api.NewLoads(kept, s.view, slog.Default()),
		Membership: pb.UnimplementedMembershipServiceServer{}, Accounts: pb.UnimplementedAccountServiceServer{},
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	s.server = made
	go func() { _ = made.Serve(listener) }()
	t.Cleanup(made.Stop)
	s.address = listener.Addr().String()
	return s
}

func (s *system) files(name string) client.Files {
	at := func(file string) string { return filepath.Join(s.certs, file) }
	return client.Files{CA: at(certs.CAFile), Certificate: at(name + ".crt"), Key: at(name + ".key")}
}

func (s *system) as(name string) *grpc.ClientConn {
	s.t.Helper()
	with, err := client.Credentials(s.files(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.dial(with)
}

func (s *system) dial(with credentials.TransportCredentials) *grpc.ClientConn {
	s.t.Helper()
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(with))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func fabric(name string) *pb.CreateFabricRequest {
	return &pb.CreateFabricRequest{Fabric: &pb.Fabric{Meta: &pb.ObjectMeta{Name: name}, Spec: &pb.FabricSpec{}}}
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("got %v, wanted %v", err, code)
	}
}

// wantField asserts that an error names a field.
func wantField(t *testing.T, err error, code codes.Code, field string) {
	t.Helper()
	wantCode(t, err, code)
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				if violation.GetField() == field {
					return
				}
			}
		}
	}
	t.Fatalf("%v does not name %s: %v", err, field, status.Convert(err).Details())
}

func TestRolesMayDoWhatTheyAreFor(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	create := func(who, name string) error {
		_, err := pb.NewFabricServiceClient(s.as(who)).CreateFabric(ctx, fabric(name))
		return err
	}
	list := func(who string) error {
		_, err := pb.NewFabricServiceClient(s.as(who)).ListFabrics(ctx, &pb.ListFabricsRequest{})
		return err
	}
	wantCode(t, create("admin", "red"), codes.OK)
	wantCode(t, create("reader", "blue"), codes.PermissionDenied)
	wantCode(t, create("gateway", "blue"), codes.PermissionDenied)
	wantCode(t, create("unknown", "blue"), codes.PermissionDenied)
	wantCode(t, list("reader"), codes.OK)
	wantCode(t, list("gateway"), codes.PermissionDenied)

	who := func(name string) error {
		_, err := pb.NewMaintenanceServiceClient(s.as(name)).GetControlPlane(ctx, &pb.GetControlPlaneRequest{})
		return err
	}
	backup := func(name string) error {
		stream, err := pb.NewMaintenanceServiceClient(s.as(name)).Backup(ctx, &pb.BackupRequest{})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	wantCode(t, who("reader"), codes.OK)
	wantCode(t, who("gateway"), codes.PermissionDenied)
	wantCode(t, backup("reader"), codes.PermissionDenied)
	wantCode(t, backup("admin"), codes.OK)
}

func TestNoClientIsServedWithoutACertificateOfTheCA(t *testing.T) {
	s := start(t)
	_, err := pb.NewFabricServiceClient(s.dial(insecure.NewCredentials())).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	wantCode(t, err, codes.Unavailable)

	stranger := &system{t: t, certs: t.TempDir(), address: s.address}
	authority, err := certs.OpenAuthority(stranger.certs)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(certs.Leaf{File: "admin", CommonName: "eve", Role: "admin"}); err != nil {
		t.Fatal(err)
	}
	files := stranger.files("admin")
	files.CA = filepath.Join(s.certs, certs.CAFile) // the client trusts the server, but the server does not trust the client
	with, err := client.Credentials(files)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pb.NewFabricServiceClient(s.dial(with)).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	wantCode(t, err, codes.Unavailable)
}

func TestErrorsNameTheField(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	volumes := pb.NewVolumeServiceClient(s.as("admin"))
	create := func(spec *pb.VolumeSpec) error {
		_, err := volumes.CreateVolume(ctx, &pb.CreateVolumeRequest{
			Volume: &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders"}, Spec: spec}})
		return err
	}
	wantField(t, create(&pb.VolumeSpec{Pool: "p", SizeBytes: 5}), codes.InvalidArgument, "spec.sizeBytes")
	wantField(t, create(&pb.VolumeSpec{Pool: "p", SizeBytes: 1<<20 + 1}), codes.InvalidArgument, "spec.sizeBytes")
	wantField(t, create(&pb.VolumeSpec{Pool: "p", SizeBytes: 1 << 20}), codes.FailedPrecondition, "spec.pool")
	_, err := volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: "orders"})
	wantCode(t, err, codes.NotFound)
	_, err = volumes.ListVolumes(ctx, &pb.ListVolumesRequest{Options: &pb.ListOptions{PageToken: "forged"}})
	wantField(t, err, codes.InvalidArgument, "options.pageToken")
}

func host(password string) *pb.Host {
	return &pb.Host{Meta: &pb.ObjectMeta{Name: "web"}, Spec: &pb.HostSpec{
		Initiators: []string{"iqn.2026-11.org.example:web"}, Chap: &pb.ChapCredentials{Password: password}}}
}

func TestSecretsGoInAndNeverComeOutNorIntoTheLog(t *testing.T) {
	s := start(t)
	ctx, hosts := t.Context(), pb.NewHostServiceClient(s.as("admin"))
	const secret = "open-sesame-123"
	made, err := hosts.CreateHost(ctx, &pb.CreateHostRequest{Host: host(secret)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := hosts.GetHost(ctx, &pb.GetHostRequest{Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if chap := got.GetHost().GetSpec().GetChap(); chap.GetPassword() != "" || !chap.GetPasswordSet() {
		t.Fatalf("read back: %v", got)
	}
	if strings.Contains(made.String()+got.String()+s.log.String(), secret) {
		t.Fatal("the secret came out")
	}
	if !strings.Contains(s.log.String(), "method=/sluice.v1.HostService/CreateHost object=web result=OK") {
		t.Fatalf("audit log:\n%s", s.log)
	}
}

func TestAnUpdateWithoutThePasswordKeepsIt(t *testing.T) {
	s := start(t)
	ctx, hosts := t.Context(), pb.NewHostServiceClient(s.as("admin"))
	if _, err := hosts.CreateHost(ctx, &pb.CreateHostRequest{Host: host("open-sesame-123")}); err != nil {
		t.Fatal(err)
	}
	changed := host("")
	changed.Spec.MaxSessions = 7
	got, err := hosts.UpdateHost(ctx, &pb.UpdateHostRequest{Host: changed})
	if err != nil || !got.GetHost().GetSpec().GetChap().GetPasswordSet() || got.GetHost().GetSpec().GetMaxSessions() != 7 {
		t.Fatalf("%v, %v", got, err)
	}
}

func TestAWatchTellsChangesInOrder(t *testing.T) {
	s := start(t)
	fabrics := pb.NewFabricServiceClient(s.as("admin"))
	stream, err := fabrics.WatchFabrics(t.Context(), &pb.WatchFabricsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	hear := func(want pb.ChangeType) *pb.WatchFabricsResponse {
		t.Helper()
		for {
			got, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got.GetType() == want {
				return got
			}
		}
	}
	hear(pb.ChangeType_CHANGE_TYPE_RESET)
	hear(pb.ChangeType_CHANGE_TYPE_BOOKMARK)
	if _, err := fabrics.CreateFabric(t.Context(), fabric("red")); err != nil {
		t.Fatal(err)
	}
	if got := hear(pb.ChangeType_CHANGE_TYPE_PUT); got.GetFabric().GetMeta().GetName() != "red" {
		t.Fatalf("%v", got)
	}
	if _, err := fabrics.DeleteFabric(t.Context(), &pb.DeleteFabricRequest{Name: "red"}); err != nil {
		t.Fatal(err)
	}
	hear(pb.ChangeType_CHANGE_TYPE_DELETED)
}

func TestAPlainServerListensOnLoopbackOnly(t *testing.T) {
	if listener, err := server.Listen("0.0.0.0:0", true); err == nil {
		_ = listener.Close()
		t.Fatal("listens on every address without TLS")
	}
	listener, err := server.Listen(net.JoinHostPort("127.0.0.1", "0"), true)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
