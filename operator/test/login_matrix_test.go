package test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/logins"
)

const (
	matrixName    = "iqn.2026-11.org.example:matrix-" // prefix of initiators, followed by the host's name
	matrixSecret  = "a secret of 16 b"
	matrixRotated = "another secret of"
	matrixMutual  = "the target's own"
)

// server is a gateway on the node n1 without a pod: the test ends its process and starts it again with the same files.
type server struct {
	name, portal, forwarding string
	arguments                []string
	process                  *process
}

// matrix is a target whose hosts are resources, exported by two gateways on one node.
type matrix struct {
	*testing.T
	target  string
	hosts   map[string]logins.Credentials
	servers []*server
}

// serve creates a gateway of a pool and starts its process.
func (m *matrix) serve(pool string, number int) {
	m.Helper()
	address := fmt.Sprintf("127.0.3.%d", number)
	s := &server{name: fmt.Sprintf("%s-%d", pool, number), portal: address + ":3270", forwarding: address + ":3261"}
	gateways := pb.NewGatewayServiceClient(env.connection)
	if _, err := gateways.CreateGateway(m.Context(), &pb.CreateGatewayRequest{Gateway: &pb.Gateway{Meta: &pb.ObjectMeta{Name: s.name},
		Spec: &pb.GatewaySpec{GatewayPool: pool, Node: "n1", ForwardingAddress: s.forwarding,
			Portals: []*pb.Portal{{Listen: s.portal, Fabric: pool}}}}}); err != nil {
		m.Fatal(err)
	}
	state := m.TempDir()
	s.arguments = []string{"--gateway-name", s.name, "--node", "n1", "--state-dir", state, "--admin-socket", filepath.Join(state, "gateway.sock"),
		"--device-records", state, "--reactors", "1", "--control-plane", env.server, "--insecure-loopback"}
	m.start(s)
	m.servers = append(m.servers, s)
	m.Cleanup(func() {
		s.process.stop()
		if err := until(func() error {
			_, err := gateways.DeleteGateway(context.Background(), &pb.DeleteGatewayRequest{Name: s.name})
			if status.Code(err) == codes.NotFound {
				return nil
			}
			return fmt.Errorf("gateway %s is there: %w", s.name, err)
		}); err != nil {
			m.Error(err)
		}
	})
}

func (m *matrix) start(s *server) {
	m.Helper()
	var err error
	if s.process, err = env.start(s.name, "sluice-gateway", s.arguments...); err != nil {
		m.Fatal(err)
	}
}

// end ends a gateway by a signal.
func (m *matrix) end(s *server, signal syscall.Signal) {
	m.Helper()
	must(s.process.Process.Signal(signal))
	eventually(m.T, func() error {
		if !s.process.over() {
			return fmt.Errorf("%s still runs", s.name)
		}
		return nil
	})
}

// owner returns the gateway that serves the volume, other than `not`.
func (m *matrix) owner(not *server) (owner *server) {
	m.Helper()
	eventually(m.T, func() error {
		has := stored(m.T, "shop.logins").GetStatus()
		for _, s := range m.servers {
			got, err := pb.NewGatewayServiceClient(env.connection).GetGateway(m.Context(), &pb.GetGatewayRequest{Name: s.name})
			if err == nil && has.GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED && s != not &&
				got.GetGateway().GetStatus().GetNumber() == has.GetOwnerGateway() {
				owner = s
				return nil
			}
		}
		return fmt.Errorf("the volume is %s, gateway %d's", has.GetOwnership(), has.GetOwnerGateway())
	})
	return owner
}

func (m *matrix) hold(place string, s *server) {
	m.Helper()
	all := slices.Collect(maps.Values(m.hosts))
	if err := logins.Hold(m.Context(), s.portal, m.target, all...); err != nil {
		m.Fatalf("%s: %v", place, err) // every other place would wait as long
	}
	if err := logins.Check(m.Context(), logins.Attempt.Rejected, s.forwarding, m.target, all...); err != nil {
		m.Errorf("%s, forwarding port: %v", place, err)
	}
}

func (m *matrix) everywhere(when string) {
	m.Helper()
	owner := m.owner(nil)
	for _, s := range m.servers {
		place := when + ", forwarder"
		if s == owner {
			place = when + ", owner"
		}
		m.hold(place, s)
	}
}

func (m *matrix) secret(name, password string) *corev1.Secret {
	m.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logins-" + name},
		Data: map[string][]byte{"password": []byte(password)}}
	create(m.T, secret)
	return secret
}

// host creates a Host resource, and records the credentials that it must require.
func (m *matrix) host(name, spec string, credentials logins.Credentials) *v1alpha1.Host {
	m.Helper()
	credentials.Initiator = matrixName + name
	r := read(m.T, &v1alpha1.Host{}, fmt.Sprintf("metadata: {namespace: shop, name: matrix-%s}\nspec: {initiators: [%q], %s}", name,
		credentials.Initiator, spec))
	create(m.T, r)
	ready(m.T, r, metav1.ConditionTrue, "", "")
	m.hosts[name] = credentials
	return r
}

func TestAHostThatIsAResourceLogsInWithItsCredentialsOnlyThroughEveryPortal(t *testing.T) {
	m := &matrix{T: t, hosts: map[string]logins.Credentials{}}
	present(t, row{"Fabric", "logins", `{}`}, row{"GatewayPool", "logins", `{replicas: 0, portals: [{fabric: logins}], template: {image: i}}`},
		row{"StoragePool", "logins", fmt.Sprintf(`{local: {node: n1, directory: %q}}`, t.TempDir())})
	m.serve("logins", 1)
	m.serve("logins", 2)
	kept := volume(t, "logins", `{pool: logins, size: 16Mi}`)
	create(t, kept)
	ready(t, kept, metav1.ConditionTrue, "", "")
	own := m.secret("named", matrixSecret)
	m.secret("own", matrixSecret)
	m.secret("back", matrixMutual)
	m.host("open", "allowUnauthenticated: true", logins.Credentials{})
	m.host("nameless", "chap: {secretRef: {name: logins-own}}", logins.Credentials{User: matrixName + "nameless", Secret: matrixSecret})
	named := m.host("named", "chap: {username: web, secretRef: {name: logins-named}}, mutualChap: {username: store, secretRef: {name: logins-back}}",
		logins.Credentials{User: "web", Secret: matrixSecret, MutualUser: "store", MutualSecret: matrixMutual})
	m.host("mutual", "chap: {secretRef: {name: logins-own}}, mutualChap: {secretRef: {name: logins-back}}",
		logins.Credentials{User: matrixName + "mutual", Secret: matrixSecret, MutualSecret: matrixMutual})
	var names []string
	for name := range m.hosts {
		names = append(names, "matrix-"+name)
	}
	target := read(t, &v1alpha1.Target{}, fmt.Sprintf("metadata: {namespace: shop, name: logins}\nspec: {gatewayPool: logins, paths: 2, "+
		"luns: [{id: 0, volume: logins}], hosts: [%s]}", strings.Join(names, ", ")))
	create(t, target)
	ready(t, target, metav1.ConditionTrue, "", "2 of 2")
	m.target = target.Status.IQN
	mutual := m.hosts["mutual"]
	mutual.MutualUser = m.target // the default of an empty name
	m.hosts["mutual"] = mutual
	m.everywhere("made as resources")

	must(change(t, own, func(s *corev1.Secret) { s.Data["password"] = []byte(matrixRotated) }))
	m.hosts["named"] = logins.Credentials{Initiator: matrixName + "named", User: "web", Secret: matrixRotated, MutualUser: "store",
		MutualSecret: matrixMutual, Former: []initiator.CHAP{{User: "web", Secret: matrixSecret}}}
	m.everywhere("secret rotated")

	must(change(t, named, func(h *v1alpha1.Host) { h.Spec.Chap.Username, h.Spec.MutualChap.Username = "", "" }))
	m.hosts["named"] = logins.Credentials{Initiator: matrixName + "named", User: matrixName + "named", Secret: matrixRotated,
		MutualUser: m.target, MutualSecret: matrixMutual, Former: []initiator.CHAP{{User: "web", Secret: matrixRotated}, {User: "web", Secret: matrixSecret}}}
	m.everywhere("user names removed")

	gone := m.owner(nil)
	m.end(gone, syscall.SIGKILL)
	survivor := m.owner(gone)
	m.hold("after a takeover", survivor)

	env.plane.stop()
	t.Cleanup(func() { must(env.startControlPlane()) })
	m.end(survivor, syscall.SIGTERM) // so that it has saved its newest state
	m.start(survivor)
	m.hold("after a restart without the control plane", survivor)
}
