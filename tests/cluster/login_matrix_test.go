package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/logins"
	"sluice.dev/sluice/tests/netns"
)

const (
	matrixName = "iqn.2026-11.dev.sluice:matrix-" // prefix of initiators
	secret     = "a secret of 16 b"
	rotated    = "another secret of"
	mutual     = "the target's own"

	stopPatience = 15 * time.Second // a gateway stops within 10 s
)

// matrix is a cluster whose target admits hosts with every form of credentials.
type matrix struct {
	*testing.T
	*cluster.Cluster
	ctx context.Context
	// hosts has the credentials in force, by host name.
	hosts map[string]logins.Credentials
}

func (m *matrix) file(text string) string {
	m.Helper()
	name := filepath.Join(m.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
	return name
}

func (m *matrix) control(arguments ...string) {
	m.Helper()
	if _, err := m.Control(m.ctx, arguments...); err != nil {
		m.Fatal(err)
	}
}

// apply replaces hosts with files, as an administrator does.
func (m *matrix) apply(name, spec string) {
	m.Helper()
	m.control("apply", "-f", m.file(fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Host\nmeta: {name: %s}\nspec: {%s}\n", name, spec)))
}

// admit lets all hosts log in to the target.
func (m *matrix) admit() {
	m.Helper()
	var names []string
	for name := range m.hosts {
		names = append(names, name)
	}
	m.control("apply", "-f", m.file(fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, "+
		"gatewayPool: default, paths: 2, luns: [{id: 0, volume: %s}], hosts: [%s]}\n", cluster.Target, cluster.VolumeName(0),
		strings.Join(names, ", "))))
}

// makeByCLI creates a host with `sluicectl host create`, as the documentation does.
func (m *matrix) makeByCLI(name string, flags ...string) {
	m.Helper()
	m.control(append([]string{"host", "create", name, "--initiator", matrixName + name}, flags...)...)
}

// hold waits until the right credentials of every host are in force on a portal, then requires every answer.
func (m *matrix) hold(place, portal string) {
	m.Helper()
	if err := logins.Hold(m.ctx, portal, cluster.Target, slices.Collect(maps.Values(m.hosts))...); err != nil {
		m.Fatalf("%s: %v", place, err) // every other place would wait as long
	}
}

func (m *matrix) everywhere(when string) {
	m.Helper()
	owner, err := m.Owner(m.ctx, 0)
	if err != nil {
		m.Fatal(err)
	}
	for i := range m.Gateways {
		place := when + ", forwarder"
		if i == owner {
			place = when + ", owner"
		}
		m.hold(place, m.Portals(i)[0])
		for _, c := range m.hosts {
			if err := logins.Check(m.ctx, logins.Attempt.Rejected, m.ForwardingAddress(i), cluster.Target, c); err != nil {
				m.Errorf("%s: %v", place, err)
			}
		}
	}
}

func TestAHostLogsInWithItsCredentialsOnlyThroughEveryPortal(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	m := &matrix{t, c, ctx, map[string]logins.Credentials{}}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	chap, back := m.file(secret+"\n"), m.file(mutual+"\n")
	m.makeByCLI("named", "--chap-user", "web", "--chap-secret-file", chap, "--mutual-chap-user", "store", "--mutual-chap-secret-file", back)
	m.hosts["named"] = logins.Credentials{Initiator: matrixName + "named", User: "web", Secret: secret, MutualUser: "store", MutualSecret: mutual}
	m.makeByCLI("nameless", "--chap-secret-file", chap)
	m.hosts["nameless"] = logins.Credentials{Initiator: matrixName + "nameless", User: matrixName + "nameless", Secret: secret}
	m.makeByCLI("mutual", "--chap-secret-file", chap, "--mutual-chap-secret-file", back)
	m.hosts["mutual"] = logins.Credentials{Initiator: matrixName + "mutual", User: matrixName + "mutual", Secret: secret,
		MutualUser: cluster.Target, MutualSecret: mutual}
	m.makeByCLI("second", "--initiator", matrixName+"third", "--chap-secret-file", chap)
	m.hosts["second"] = logins.Credentials{Initiator: matrixName + "third", User: matrixName + "third", Secret: secret,
		Former: []initiator.CHAP{{User: matrixName + "second", Secret: secret}}}
	m.makeByCLI("open", "--allow-unauthenticated")
	m.hosts["open"] = logins.Credentials{Initiator: matrixName + "open"}
	m.admit()
	m.everywhere("made by the CLI")

	// A session outlives the secret that it authenticated with.
	kept, err := initiator.Login(ctx, initiator.Options{Portal: c.Portals(0)[0], Target: cluster.Target, Initiator: matrixName + "named",
		CHAP: &initiator.CHAP{User: "web", Secret: secret}, ISID: [6]byte{0x80, 0, 0, 0x78}})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	m.apply("named", fmt.Sprintf("initiators: [%snamed], chap: {username: web, password: %q}", matrixName, rotated))
	m.hosts["named"] = logins.Credentials{Initiator: matrixName + "named", User: "web", Secret: rotated,
		Former: []initiator.CHAP{{User: "web", Secret: secret}}}
	m.everywhere("secret rotated")
	select {
	case <-kept.Over():
		t.Error("a session ended because its secret was rotated:", kept.Lost())
	default:
	}

	m.apply("named", fmt.Sprintf("initiators: [%snamed], chap: {password: %q}", matrixName, rotated))
	m.hosts["named"] = logins.Credentials{Initiator: matrixName + "named", User: matrixName + "named", Secret: rotated,
		Former: []initiator.CHAP{{User: "web", Secret: rotated}, {User: "web", Secret: secret}}}
	m.everywhere("user name removed")

	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Gateways[owner].Kill(); err != nil {
		t.Fatal(err)
	}
	survivor := 1 - owner
	if err := netns.Until(ctx, func() error {
		now, err := c.Owner(ctx, 0)
		if err == nil && now != survivor {
			err = fmt.Errorf("%s owns the volume", cluster.GatewayName(now))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	m.hold("after a takeover", c.Portals(survivor)[0])

	// SIGTERM, so that the gateway has saved its newest desired state: a killed gateway may have saved an older one.
	if err := errors.Join(c.Replicas[0].Kill(), c.Gateways[survivor].Stop(stopPatience)); err != nil {
		t.Fatal(err)
	}
	if err := c.Gateways[survivor].Start(); err != nil {
		t.Fatal(err)
	}
	m.hold("after a restart without the control plane", c.Portals(survivor)[0])
}

// A session that never authenticated must not outlive the change that requires CHAP.
func TestASessionWithoutCHAPEndsWhenTheHostMustAuthenticate(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	m := &matrix{t, c, ctx, map[string]logins.Credentials{"open": {Initiator: matrixName + "open"}}}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	m.makeByCLI("open", "--allow-unauthenticated")
	m.admit()
	exporting(ctx, t, c, "")
	session, err := initiator.Login(ctx, initiator.Options{Portal: c.Portals(0)[0], Target: cluster.Target, Initiator: matrixName + "open"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	m.apply("open", fmt.Sprintf("initiators: [%sopen], chap: {password: %q}", matrixName, secret))
	select {
	case <-session.Over():
	case <-ctx.Done():
		t.Error("the session goes on")
	}
}
