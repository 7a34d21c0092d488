package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

const (
	// Ceph keys of two pools: one that the gateway's GatewayPool uses, and one that it does not.
	ownKey    = "the key of its own pool"
	othersKey = "the key of another pool"

	heartbeat = 500 * time.Millisecond // a stream that is silent for 3 s ends
)

// stranger is a program that has the certificate of a gateway, and sends arbitrary messages on its stream.
type stranger struct {
	*testing.T
	stream pb.GatewayStreamService_ConnectClient
	mutex  sync.Mutex // of sending
}

// connects opens a stream as a gateway, and keeps it alive.
func connects(ctx context.Context, t *testing.T, service pb.GatewayStreamServiceClient, hello *pb.StreamHello) *stranger {
	t.Helper()
	stream, err := service.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{T: t, stream: stream}
	s.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Hello{Hello: hello}})
	go func() {
		beat := &pb.ConnectRequest{Message: &pb.ConnectRequest_Heartbeat{Heartbeat: &pb.StreamHeartbeat{}}}
		for netns.Wait(stream.Context(), heartbeat) == nil && s.trySend(beat) == nil {
		}
	}()
	return s
}

func (s *stranger) trySend(message *pb.ConnectRequest) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.stream.Send(message)
}

// withCertificate connects to the control plane with a newly issued certificate of a gateway.
func withCertificate(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway string) pb.GatewayStreamServiceClient {
	t.Helper()
	certs := filepath.Join(c.Directory, "certs")
	if output, err := exec.CommandContext(ctx, filepath.Join(c.Programs, "sluice-controlplane"), "certs", "--directory", certs,
		"--gateway", gateway).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	connection, err := client.Connect(client.Options{
		Endpoints: []string{c.Network.Address(cluster.ControlNode, cluster.Internal) + ":7460"}, TLS: c.Files("gateway-" + gateway)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewGatewayStreamServiceClient(connection)
}

func (s *stranger) send(message *pb.ConnectRequest) {
	s.Helper()
	if err := s.trySend(message); err != nil {
		_, err = s.stream.Recv()
		s.Fatal(err)
	}
}

// await returns the first wanted answer, and all earlier ones as text.
func (s *stranger) await(wanted func(*pb.ConnectResponse) bool) (answer *pb.ConnectResponse, before string) {
	s.Helper()
	for {
		message, err := s.stream.Recv()
		if err != nil {
			s.Fatal("the stream ended:", err)
		}
		if before += message.String(); wanted(message) {
			return message, before
		}
	}
}

// loads requests the reservations of a volume.
func (s *stranger) loads(uid string, epoch uint64) *pb.ReservationState {
	s.Helper()
	s.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationLoad{ReservationLoad: &pb.ReservationLoad{RequestId: 7, VolumeUid: uid,
		Epoch: epoch}}})
	answer, _ := s.await(func(m *pb.ConnectResponse) bool { return m.GetReservationState() != nil })
	return answer.GetReservationState()
}

// flood sends large reports until the control plane ends the stream, and returns the reason.
func (s *stranger) flood() error {
	s.Helper()
	text := strings.Repeat("x", 1<<20)
	for i := range 150 {
		if s.trySend(&pb.ConnectRequest{Message: &pb.ConnectRequest_VolumeObserved{VolumeObserved: &pb.VolumeObserved{
			Uid: fmt.Sprintf("no-volume-%d", i), Epoch: 1, State: pb.VolumeState_VOLUME_STATE_FAILED, Reason: text}}}) != nil {
			break // the reason is read below
		}
	}
	for {
		if _, err := s.stream.Recv(); err != nil {
			return err
		}
	}
}

// A gateway that an attacker controls must not reach beyond its GatewayPool and the targets that it exports.
func TestTheCertificateOfAGatewayOpensItsOwnPoolsAndVolumesOnly(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(objects, fmt.Appendf(nil, `
{apiVersion: sluice.dev/v1, kind: GatewayPool, meta: {name: edge}, spec: {fabrics: [red]}}
---
{apiVersion: sluice.dev/v1, kind: GatewayPool, meta: {name: vault}, spec: {fabrics: [red]}}
---
{apiVersion: sluice.dev/v1, kind: Gateway, meta: {name: edge-1}, spec: {gatewayPool: edge, node: node-9, forwardingAddress: "192.0.2.9:3261",
  portals: [{listen: "192.0.2.9:3260", fabric: red}]}}
---
{apiVersion: sluice.dev/v1, kind: StoragePool, meta: {name: edge}, spec: {gatewayPools: [edge],
  rbd: {monitors: ["192.0.2.8:3300"], user: u, key: %q, pool: p}}}
---
{apiVersion: sluice.dev/v1, kind: StoragePool, meta: {name: vault}, spec: {gatewayPools: [vault],
  rbd: {monitors: ["192.0.2.8:3300"], user: v, key: %q, pool: p}}}
`, ownKey, othersKey), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control(ctx, "apply", "-f", objects); err != nil {
		t.Fatal(err)
	}
	service := withCertificate(ctx, t, c, "edge-1")
	s := connects(ctx, t, service, &pb.StreamHello{Gateway: "edge-1", Incarnation: "0123456789abcdef", Node: "node-9", MinProtocol: 1, MaxProtocol: 1,
		Capabilities: []string{"rbd", "local", "reflink"}})
	_, state := s.await(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil })

	volumes := pb.NewVolumeServiceClient(c.Connection())
	got, err := volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: cluster.VolumeName(0)})
	if err != nil {
		t.Fatal(err)
	}
	if has := s.loads(got.GetVolume().GetMeta().GetUid(), got.GetVolume().GetStatus().GetEpoch()); has.GetResult() != pb.CommitResult_COMMIT_RESULT_FENCED ||
		len(has.GetState()) > 0 {
		t.Errorf("it loads reservations of a volume that others export: %v", has)
	}
	s.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_SessionsObserved{SessionsObserved: &pb.SessionsObserved{Full: true,
		Put: []*pb.SessionObserved{{Tsih: 7, Isid: "400000000001", Initiator: cluster.Initiator + "1", TargetIqn: cluster.Target}}}}})
	s.loads("none", 1) // its answer comes after the report was handled
	sessions, err := c.Control(ctx, "session", "list", "-o", "json")
	if err != nil || strings.Contains(string(sessions), "edge-1") {
		t.Errorf("a session that no gateway has is in the register: %s %v", sessions, err)
	}
	if !strings.Contains(state, ownKey) || strings.Contains(state, othersKey) {
		t.Errorf("it receives the key of its own pool: %v, of another pool: %v", strings.Contains(state, ownKey), strings.Contains(state, othersKey))
	}

	if err := s.flood(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a flood ends the stream with %v", err)
	}
	s = connects(ctx, t, service, &pb.StreamHello{Gateway: "gw-1", Incarnation: "fedcba9876543210", Node: "node-1", MinProtocol: 1, MaxProtocol: 1})
	if _, err := s.stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("it speaks for another gateway: %v", err)
	}
	if _, err := c.Control(ctx, "volume", "list"); err != nil {
		t.Error("after the flood:", err)
	}
}
