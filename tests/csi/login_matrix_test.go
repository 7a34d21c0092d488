package csi_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/logins"
	"sluice.dev/sluice/tests/netns"
)

const (
	classSecret   = "a secret of 16 b"
	classRotated  = "another secret of"
	classMutual   = "the target's own"
	stopsWithin   = 15 * time.Second // a gateway stops within 10 s
	keyUsername   = "node.session.auth.username"
	keyPassword   = "node.session.auth.password"
	keyUsernameIn = "node.session.auth.username_in"
	keyPasswordIn = "node.session.auth.password_in"
)

// matrix is a volume that several nodes share, so that one target admits nodes with every form of credentials.
type matrix struct {
	*testing.T
	volume, target string
	nodes          map[string]logins.Credentials
}

// publish publishes the volume and returns the publish context.
func (m *matrix) publish(id string, secrets map[string]string) map[string]string {
	m.Helper()
	found, err := publish(m.T, m.volume, id, shared, secrets)
	if err != nil {
		m.Fatalf("publish to %s: %v", id, err)
	}
	if m.target = found["iqn"]; m.target == "" {
		m.Fatal("no target")
	}
	return found
}

func (m *matrix) hold(place string, gateway int) {
	m.Helper()
	all := slices.Collect(maps.Values(m.nodes))
	if err := logins.Hold(m.Context(), env.Portals(gateway)[0], m.target, all...); err != nil {
		m.Fatalf("%s: %v", place, err) // every other place would wait as long
	}
	if err := logins.Check(m.Context(), logins.Attempt.Rejected, env.ForwardingAddress(gateway), m.target, all...); err != nil {
		m.Errorf("%s, forwarding port: %v", place, err)
	}
}

// owner returns the gateway that owns the volume, other than `not`.
func (m *matrix) owner(not int) (owner int) {
	m.Helper()
	if err := netns.Until(m.Context(), func() (err error) {
		if owner, err = env.OwnerOf(m.Context(), m.volume); err == nil && owner == not {
			err = fmt.Errorf("%s owns the volume", cluster.GatewayName(owner))
		}
		return err
	}); err != nil {
		m.Fatal(err)
	}
	return owner
}

func (m *matrix) everywhere(when string) {
	m.Helper()
	owner := m.owner(-1)
	for i := range gateways {
		place := when + ", forwarder"
		if i == owner {
			place = when + ", owner"
		}
		m.hold(place, i)
	}
}

// beside admits a node through a Host of users without CHAP.
func (m *matrix) beside(node string) {
	m.Helper()
	if _, err := hosts().CreateHost(m.Context(), &pb.CreateHostRequest{Host: &pb.Host{Meta: &pb.ObjectMeta{Name: "beside"},
		Spec: &pb.HostSpec{Initiators: []string{initiatorOf(node)}, AllowUnauthenticated: true}}}); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		if _, err := hosts().DeleteHost(background, &pb.DeleteHostRequest{Name: "beside"}); err != nil {
			m.Error(err)
		}
	})
}

func TestANodeLogsInToAPublishedVolumeWithItsCredentialsOnlyThroughEveryPortal(t *testing.T) {
	const keyed, classed, open = "node-30", "node-31", "node-32"
	m := &matrix{T: t, nodes: map[string]logins.Credentials{}}
	m.beside(open)
	m.volume = create(t, "matrix", shared, nil)
	m.nodes[keyed] = logins.Credentials{Initiator: initiatorOf(keyed), User: initiatorOf(keyed),
		Secret: secretOf(t, keyed, m.publish(nodeID(keyed), nil))}
	class := map[string]string{keyUsername: "web", keyPassword: classSecret, keyUsernameIn: "store", keyPasswordIn: classMutual}
	m.publish(nodeID(classed), class)
	m.nodes[classed] = logins.Credentials{Initiator: initiatorOf(classed), User: "web", Secret: classSecret, MutualUser: "store",
		MutualSecret: classMutual}
	m.publish(nodeID(open), nil)
	m.nodes[open] = logins.Credentials{Initiator: initiatorOf(open)}
	m.everywhere("published")

	// A class's Secret names both users: kubernetes.io/iscsi-chap has no default for them.
	for _, key := range []string{keyUsername, keyUsernameIn} {
		without := maps.Clone(class)
		delete(without, key)
		_, err := publish(t, m.volume, nodeID(classed), shared, without)
		refused(t, err, codes.InvalidArgument, key)
	}
	class[keyPassword] = classRotated
	m.publish(nodeID(classed), class)
	m.nodes[classed] = logins.Credentials{Initiator: initiatorOf(classed), User: "web", Secret: classRotated, MutualUser: "store",
		MutualSecret: classMutual, Former: []initiator.CHAP{{User: "web", Secret: classSecret}}}
	former, fresh := m.nodes[keyed].Secret, nodeKey("node-30 installed again")
	m.nodes[keyed] = logins.Credentials{Initiator: initiatorOf(keyed), User: initiatorOf(keyed),
		Secret: derived(t, keyed, fresh, m.publish(announced(keyed, fresh), nil)), Former: []initiator.CHAP{{User: initiatorOf(keyed), Secret: former}}}
	m.everywhere("secrets rotated")

	if _, err := hosts().UpdateHost(t.Context(), &pb.UpdateHostRequest{Host: m.withoutUserNames("csi." + classed)}); err != nil {
		t.Fatal(err)
	}
	m.nodes[classed] = logins.Credentials{Initiator: initiatorOf(classed), User: initiatorOf(classed), Secret: classRotated,
		MutualUser: m.target, MutualSecret: classMutual, Former: []initiator.CHAP{{User: "web", Secret: classRotated}, {User: "web", Secret: classSecret}}}
	m.everywhere("user names removed")
	m.outage()
}

// withoutUserNames returns a Host as an administrator stores it who removes the names.
func (m *matrix) withoutUserNames(name string) *pb.Host {
	m.Helper()
	got, err := hosts().GetHost(m.Context(), &pb.GetHostRequest{Name: name})
	if err != nil {
		m.Fatal(err)
	}
	has := got.GetHost()
	has.Meta.ResourceVersion = 0
	has.Spec.Chap = &pb.ChapCredentials{Password: classRotated}
	has.Spec.MutualChap = &pb.ChapCredentials{Password: classMutual}
	return has
}

// outage checks the answers after a takeover, and after a restart without the control plane.
func (m *matrix) outage() {
	m.Helper()
	gone := m.owner(-1)
	m.Cleanup(func() {
		for _, p := range append(slices.Clone(env.Replicas), env.Gateways...) {
			if !p.Running() {
				if err := p.Start(); err != nil {
					m.Error(err)
				}
			}
		}
		if err := env.WaitReady(background); err != nil {
			m.Error(err)
		}
	})
	if err := env.Gateways[gone].Kill(); err != nil {
		m.Fatal(err)
	}
	survivor := m.owner(gone)
	m.hold("after a takeover", survivor)
	// SIGTERM, so that the gateway has saved its newest desired state.
	if err := errors.Join(env.Replicas[0].Kill(), env.Gateways[survivor].Stop(stopsWithin), env.Gateways[survivor].Start()); err != nil {
		m.Fatal(err)
	}
	m.hold("after a restart without the control plane", survivor)
}
