package node

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// joining is a server that joins, and the system that it joins.
type joining struct {
	*fakeServer
	cluster  *fakeCluster
	response *pb.JoinResponse
	requests []*pb.JoinRequest
	// gatewaysOnly is the flag of that name.
	gatewaysOnly bool
}

func newJoining(t *testing.T) *joining {
	f := newFakeServer(t)
	f.HostName = func() (string, error) { return "b", nil }
	cluster := newFakeCluster(f)
	cluster.fabrics = []*pb.Fabric{{Meta: &pb.ObjectMeta{Name: "red"}, Spec: &pb.FabricSpec{Subnets: []string{"192.0.2.0/24"}}}}
	return &joining{fakeServer: f, cluster: cluster, response: &pb.JoinResponse{
		Authority: "authority", SystemId: "f3579684", ApiAddresses: []string{"192.0.2.9:7460"}, AdministratorCertificate: "administrator",
		Gateways: []*pb.GatewayCertificate{{Gateway: "b-1", Certificate: "certificate of b-1"}, {Gateway: "b-2", Certificate: "certificate of b-2"}},
		Member:   &pb.MemberAdmission{Certificate: "server", PeerAddresses: []string{"192.0.2.9:7467"}, KeyFile: "key file", Cluster: "default"},
	}}
}

// join runs the preflight and all steps, as `node join` does.
func (j *joining) join(token string, options Options) (bool, string, error) {
	j.t.Helper()
	var said strings.Builder
	preflight := NewPreflight(j.System, options)
	preflight.Joining = true
	if count := preflight.Run(j.t.Context(), &said); count > 0 {
		j.t.Fatalf("%d problems:\n%s", count, said.String())
	}
	work := &Join{Preflight: preflight, Token: token, At: "192.0.2.9:7468", GatewaysOnly: j.gatewaysOnly, Certificates: "/root/sluice-certs",
		Call: func(_ context.Context, request *pb.JoinRequest) (*pb.JoinResponse, error) {
			j.requests = append(j.requests, request)
			return j.response, j.change("join")
		},
		StoreAccess: func(access Access) (bool, error) {
			if access.Server != "192.0.2.1:7460" || j.exists("/root/context") {
				return false, nil
			}
			j.file("/root/context", "")
			return true, j.change("context")
		},
		Connect: func(Access) Cluster { return j.cluster }, Say: func(text string) { said.WriteString(text) }}
	changed, err := work.Run(j.t.Context(), &said)
	return changed, said.String(), err
}

func TestJoinMakesAMemberWithTwoGateways(t *testing.T) {
	j := newJoining(t)
	if changed, out, err := j.join("token", Options{Pools: []string{"/srv/sluice"}}); err != nil || !changed {
		t.Fatalf("changed: %v, %v\n%s", changed, err, out)
	}
	request := j.requests[0]
	if request.GetToken() != "token" || request.GetNode() != "b" || request.GetMember().GetPeerAddress() != "192.0.2.1:7467" || len(request.GetGateways()) != 2 {
		t.Errorf("the request is %v", request)
	}
	block, _ := pem.Decode([]byte(request.GetGateways()[0].GetCertificateRequest()))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.CheckSignature() != nil {
		t.Errorf("the certificate request of b-1: %v", err)
	}
	if text := request.String(); strings.Contains(text, "PRIVATE KEY") {
		t.Error("a private key leaves the server")
	}
	want := "--listen 192.0.2.1:7460 --node b --etcd-peer-address 192.0.2.1:7467 --join-listen 192.0.2.1:7468 " +
		"--system-id f3579684 --cluster default --etcd-join 192.0.2.9:7467"
	if got := flagsIn(j.text(controlPlaneEnv)); got != want {
		t.Errorf("the flags of the control plane are %s", got)
	}
	if got := flagsIn(j.text("/etc/sluice/gateway-b-1.env")); got != "--control-plane 192.0.2.1:7460 --control-plane 192.0.2.9:7460 --node b --metrics 127.0.0.1:7462" {
		t.Errorf("the flags of b-1 are %s", got)
	}
	for path, mode := range map[string]os.FileMode{"/var/lib/sluice-controlplane/secrets.key": 0o600, tlsDirectory + "/server.key": 0o640,
		"/root/sluice-certs/admin.key": 0o600, "/root/sluice-certs": 0o700, controlPlaneDir: 0o700} {
		if state, err := os.Stat(j.path(path)); err != nil || state.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, state, err)
		}
	}
	if gateway, _ := j.cluster.objects["Gateway/b-2"].(*pb.Gateway); gateway.GetSpec().GetPortals()[0].GetListen() != "192.0.2.1:3270" ||
		gateway.GetSpec().GetPortals()[0].GetFabric() != "red" {
		t.Errorf("b-2 is %v", gateway)
	}
	if !j.units[controlPlaneUnit] || !j.units["sluice-gateway@b-1.service"] || j.units[sampleUnit] {
		t.Errorf("the units are %v", j.units)
	}
}

func TestJoinAgainChangesNothingAndNeedsNoToken(t *testing.T) {
	j := newJoining(t)
	if _, _, err := j.join("token", Options{Pools: []string{"/srv/sluice"}}); err != nil {
		t.Fatal(err)
	}
	j.calls = nil
	if changed, out, err := j.join("", Options{}); err != nil || changed || len(j.calls) > 0 {
		t.Errorf("changed: %v, %v, %v\n%s", changed, err, j.calls, out)
	}
}

func TestJoinAfterAnInterruptionAtEachStepContinues(t *testing.T) {
	complete := newJoining(t)
	if _, _, err := complete.join("token", Options{}); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= len(complete.calls); at++ {
		j := newJoining(t)
		j.failAt = at
		if _, out, err := j.join("token", Options{}); !errors.Is(err, errInterrupted) {
			t.Fatalf("call %d did not fail: %v\n%s", at, err, out)
		}
		key := j.text(tlsDirectory + "/gateway-b-1.key") // empty: not made yet
		j.failAt = 0
		if changed, out, err := j.join("token", Options{}); err != nil || !changed {
			t.Errorf("after an interruption at %q: changed %v, %v\n%s", complete.calls[at-1], changed, err, out)
		}
		// The control plane refuses another key of a gateway that has connected.
		if now := j.text(tlsDirectory + "/gateway-b-1.key"); key != "" && now != key {
			t.Errorf("after an interruption at %q the gateway has another key", complete.calls[at-1])
		}
		if !maps.Equal(j.units, complete.units) {
			t.Errorf("after an interruption at %q the units are %v", complete.calls[at-1], j.units)
		}
	}
}

func TestJoinWithoutATokenAsksForIt(t *testing.T) {
	j := newJoining(t)
	if _, _, err := j.join("", Options{}); err == nil || !strings.Contains(err.Error(), "give TOKEN@ADDRESS") {
		t.Error(err)
	}
	if len(j.calls) > 0 || j.exists(RecordFile) {
		t.Errorf("something was changed: %v", j.calls)
	}
}

func TestAServerWithoutRoomForAMemberGetsGatewaysOnly(t *testing.T) {
	j := newJoining(t)
	j.response.Member, j.response.NoMemberReason, j.response.AdministratorCertificate = nil, "there are three members", ""
	j.cluster.elsewhere = true
	_, out, err := j.join("token", Options{})
	if err != nil || !strings.Contains(out, "gateways only: there are three members") {
		t.Fatalf("%v\n%s", err, out)
	}
	if j.units[controlPlaneUnit] || j.exists(tlsDirectory+"/server.crt") {
		t.Error("the control plane was started")
	}
	if got := flagsIn(j.text("/etc/sluice/gateway-b-1.env")); !strings.HasPrefix(got, "--control-plane 192.0.2.9:7460 ") {
		t.Errorf("the flags of b-1 are %s", got)
	}
}

func TestAServerThatWantsGatewaysOnlyAsksForNoMemberAlsoWhenItContinues(t *testing.T) {
	j := newJoining(t)
	j.response.Member, j.response.AdministratorCertificate = nil, ""
	j.cluster.elsewhere, j.gatewaysOnly = true, true
	if _, out, err := j.join("token", Options{}); err != nil || j.requests[0].GetMember() != nil {
		t.Fatalf("%v, %v\n%s", err, j.requests, out)
	}
	j.gatewaysOnly = false
	if changed, out, err := j.join("", Options{}); err != nil || changed || j.exists(tlsDirectory+"/server.key") {
		t.Errorf("changed %v, %v\n%s", changed, err, out)
	}
}

func TestJoinNamesTheFabricWithoutAnAddressOfThisServer(t *testing.T) {
	j := newJoining(t)
	j.cluster.fabrics[0].Spec.Subnets = []string{"198.51.100.0/24"}
	if _, _, err := j.join("token", Options{}); err == nil || !strings.Contains(err.Error(), "no address on fabric red (198.51.100.0/24)") {
		t.Errorf("%v", err)
	}
	j.cluster.fabrics[0].Spec.Subnets = nil
	if _, _, err := j.join("", Options{}); err == nil || !strings.Contains(err.Error(), "sluicectl fabric set red --subnet") {
		t.Errorf("%v", err)
	}
}

func TestAServerThatWasSetUpByOneCommandIsRefusedByTheOther(t *testing.T) {
	j := newJoining(t)
	if _, _, err := j.join("token", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, out, count := j.preflight(Options{}); count != 1 || !strings.Contains(out, "set up by `sluicectl node join`") {
		t.Errorf("%d problems\n%s", count, out)
	}
	check := NewPreflight(j.System, Options{})
	check.CheckOnly = true
	if count := check.Run(t.Context(), &strings.Builder{}); count != 0 {
		t.Errorf("node check reports %d problems", count)
	}
}

func TestRefreshRestartsGatewaysThatRunWithOtherControlPlanes(t *testing.T) {
	f := newFakeServer(t)
	cluster := newFakeCluster(f)
	if _, _, err := f.initialised(cluster, Options{}); err != nil {
		t.Fatal(err)
	}
	cluster.members = []string{"a", "b", "c"}
	for _, want := range [][]string{{"systemctl restart sluice-gateway@a-1.service", "systemctl restart sluice-gateway@a-2.service"}, nil} {
		f.calls = nil
		changed, err := (&Refresh{System: f.System, Cluster: cluster}).Run(t.Context(), &strings.Builder{})
		if err != nil || changed != (want != nil) || !slices.Equal(f.calls, want) {
			t.Errorf("changed %v, %v: %v, want %v", changed, err, f.calls, want)
		}
		if got := flagsIn(f.text("/etc/sluice/gateway-a-2.env")); !strings.HasPrefix(got, "--control-plane 192.0.2.1:7460 --control-plane 192.0.2.2:7460 --control-plane 192.0.2.3:7460 ") {
			t.Errorf("the flags of a-2 are %s", got)
		}
		if got := flagsIn(f.text(controlPlaneEnv)); !strings.HasSuffix(got, " --etcd-join 192.0.2.2:7467,192.0.2.3:7467") {
			t.Errorf("the flags of the control plane are %s", got)
		}
		f.started()
	}
	// A further run of init keeps what refresh has written.
	if changed, out, err := f.initialised(cluster, Options{}); err != nil || changed {
		t.Errorf("changed %v, %v\n%s", changed, err, out)
	}
}

func TestRefreshContinuesAfterAnInterruptionBetweenFlagsAndRestart(t *testing.T) {
	f := newFakeServer(t)
	cluster := newFakeCluster(f)
	if _, _, err := f.initialised(cluster, Options{}); err != nil {
		t.Fatal(err)
	}
	cluster.members = []string{"a", "b"}
	f.calls, f.failAt = nil, 1
	refresh := &Refresh{System: f.System, Cluster: cluster}
	if _, err := refresh.Run(t.Context(), &strings.Builder{}); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	f.failAt = 0
	if changed, err := refresh.Run(t.Context(), &strings.Builder{}); err != nil || !changed || f.calls[1] != "systemctl restart sluice-gateway@a-1.service" {
		t.Errorf("changed %v, %v: %v", changed, err, f.calls)
	}
}

func TestRefreshOfAServerThatWasSetUpOtherwiseSaysSo(t *testing.T) {
	f := newFakeServer(t)
	if _, err := (&Refresh{System: f.System, Cluster: newFakeCluster(f)}).Run(t.Context(), &strings.Builder{}); err == nil ||
		!strings.Contains(err.Error(), RecordFile) {
		t.Error(err)
	}
}
