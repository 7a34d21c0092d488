package server_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	"sluice.dev/sluice/controlplane/internal/certs"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// everyMethod calls tell for all methods of the API. JoinService has a listener of its own.
func everyMethod(tell func(protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("sluice.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			if file.Services().Get(i).Name() == "JoinService" {
				continue
			}
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				tell(methods.Get(j))
			}
		}
		return true
	})
}

// csiCalls are the methods that the CSI driver's source calls (operator/internal/csi), "Service.Method".
var csiCalls = strings.Fields(`
	VolumeService.GetVolume VolumeService.ListVolumes VolumeService.CreateVolume VolumeService.UpdateVolume VolumeService.DeleteVolume
	SnapshotService.GetSnapshot SnapshotService.ListSnapshots SnapshotService.CreateSnapshot SnapshotService.DeleteSnapshot
	TargetService.GetTarget TargetService.ListTargets TargetService.CreateTarget TargetService.UpdateTarget
	HostService.GetHost HostService.ListHosts HostService.CreateHost HostService.UpdateHost HostService.DeleteHost
	StoragePoolService.GetStoragePool StoragePoolService.ListStoragePools GatewayPoolService.ListGatewayPools GatewayService.ListGateways`)

// A new method has no role by accident. Methods that change something belong to the administrator and, except for the store
// and its servers, to the operator. Methods that only read belong to all roles except a gateway and a server,
// which have only the stream of the gateway and their certificates. The CSI driver may call a fixed list.
func TestEveryMethodIsForTheRolesThatItIsForAndNoOthers(t *testing.T) {
	s := start(t)
	wanted := func(method protoreflect.MethodDescriptor) []string {
		name, service := string(method.Name()), string(method.Parent().Name())
		switch {
		case service == "GatewayStreamService":
			return []string{"gateway"}
		case name == "RenewCertificate":
			return []string{"admin", "gateway", "server"}
		case slices.Contains(csiCalls, service+"."+name) && strings.HasPrefix(name, "Get"),
			slices.Contains(csiCalls, service+"."+name) && strings.HasPrefix(name, "List"):
			return []string{"admin", "operator", "csi", "reader"}
		case slices.Contains(csiCalls, service+"."+name):
			return []string{"admin", "operator", "csi"}
		case slices.ContainsFunc([]string{"Get", "List", "Watch"}, func(verb string) bool { return strings.HasPrefix(name, verb) }):
			return []string{"admin", "operator", "reader"}
		case service == "MaintenanceService", service == "MembershipService", service == "AccountService":
			return []string{"admin"}
		}
		return []string{"admin", "operator"}
	}
	for _, who := range []string{"admin", "operator", "csi", "reader", "gateway", "server", "unknown"} {
		connection := s.as(who)
		everyMethod(func(method protoreflect.MethodDescriptor) {
			refused := status.Code(s.call(connection, method)) == codes.PermissionDenied
			if refused == slices.Contains(wanted(method), who) {
				t.Errorf("%s may call %s: %v", who, method.FullName(), !refused)
			}
		})
	}
}

// call sends an empty message, and to streams an undecodable one, at which they end: a watch would wait for changes.
func (s *system) call(connection *grpc.ClientConn, method protoreflect.MethodDescriptor) error {
	name := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	message := &emptypb.Empty{}
	if !method.IsStreamingServer() {
		return connection.Invoke(s.t.Context(), name, message, &emptypb.Empty{})
	}
	message.ProtoReflect().SetUnknown([]byte{0x0a, 0x01, 0xff}) // its first field is truncated
	stream, err := connection.NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(message) // if it fails, RecvMsg returns the cause
	_ = stream.CloseSend()
	return stream.RecvMsg(&emptypb.Empty{})
}

// The cause of the refusal is not always reported: the connection may be closed while the client still writes.
func TestACertificateThatHasExpiredIsRefused(t *testing.T) {
	s := start(t)
	list := func(until time.Duration) error {
		s.sign("ann", "sluice:admin", until)
		_, err := pb.NewFabricServiceClient(s.as("ann")).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
		return err
	}
	wantCode(t, list(time.Hour), codes.OK)
	wantCode(t, list(-time.Minute), codes.Unavailable)
}

// sign writes a certificate of the authority that is valid for this duration.
func (s *system) sign(file, organization string, until time.Duration) {
	s.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.certs, certs.CAFile), filepath.Join(s.certs, "ca.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(until),
		Subject:     pkix.Name{CommonName: file, Organization: []string{organization}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, pair.Leaf, pair.Leaf.PublicKey, pair.PrivateKey)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(s.certs, "ca.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	for name, text := range map[string][]byte{file + ".crt": certificate, file + ".key": key} {
		if err := os.WriteFile(filepath.Join(s.certs, name), text, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestAClientWithoutACertificateIsRefused(t *testing.T) {
	s := start(t)
	trusted, err := credentials.NewClientTLSFromFile(filepath.Join(s.certs, certs.CAFile), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pb.NewFabricServiceClient(s.dial(trusted)).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	wantCode(t, err, codes.Unavailable)
	connection, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		_ = connection.Close()
		t.Error("a TLS older than 1.3 is spoken")
	}
}

func TestHealthAndReflectionAreThereForWhoHasACertificate(t *testing.T) {
	s := start(t)
	connection := s.as("reader")
	health, err := healthpb.NewHealthClient(connection).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, service := range answer.GetListServicesResponse().GetService() {
		listed[service.GetName()] = true
	}
	everyMethod(func(method protoreflect.MethodDescriptor) {
		if service := string(method.Parent().FullName()); !listed[service] {
			t.Errorf("reflection does not tell of %s", service)
		}
	})
}

func TestTheAuditLogTellsADryRunFromAChangeAndKeepsNamesShort(t *testing.T) {
	s := start(t)
	fabrics := pb.NewFabricServiceClient(s.as("admin"))
	for _, dry := range []bool{true, false} {
		request := fabric("red")
		request.DryRun = dry
		if _, err := fabrics.CreateFabric(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("ä", 1<<20)
	_, err := fabrics.DeleteFabric(t.Context(), &pb.DeleteFabricRequest{Name: long})
	wantCode(t, err, codes.InvalidArgument)
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[0], "object=red result=OK dryRun=true") ||
		!strings.HasSuffix(lines[1], "object=red result=OK") {
		t.Fatalf("%.2000s", s.log)
	}
	if len(lines[2]) > 1000 || !strings.Contains(lines[2], "result=InvalidArgument") {
		t.Errorf("%d bytes: %.1000s", len(lines[2]), lines[2])
	}
}
