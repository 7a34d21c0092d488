package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/cluster/upgrade"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/logins"
	"sluice.dev/sluice/tests/netns"
)

// upgraded unpacks the cluster of release 880afa1. Nothing runs yet. `shares` reports whether its pool is on a file system that
// can make a volume from a snapshot.
func upgraded(t *testing.T) (c *cluster.Cluster, ctx context.Context, shares bool) {
	t.Helper()
	programs, err := filepath.Abs("../../build/bin")
	if err != nil {
		t.Fatal(err)
	}
	shares, undo, err := upgrade.MakeDirectory(t.TempDir())
	if err != nil {
		t.Skipf("no bind mounts here: %v", err)
	}
	t.Cleanup(func() {
		if err := undo(); err != nil {
			t.Error(err)
		}
	})
	if err := upgrade.Unpack(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	options := upgrade.Options(programs)
	options.Gateway = os.Getenv("SLUICE_GATEWAY")
	if c, err = cluster.Resume(ctx, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(30))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, ctx, shares
}

// credentialsOf returns the credentials that each initiator of a host must present now. Without a CHAP name the initiator's name
// is used; without a mutual CHAP name, the target's.
func credentialsOf(h upgrade.Host) []logins.Credentials {
	var all []logins.Credentials
	for _, initiator := range h.Initiators {
		c := logins.Credentials{Initiator: initiator, User: initiator, Secret: h.Secret}
		if h.User != "" {
			c.User = h.User
		}
		if h.MutualSecret != "" {
			c.MutualUser, c.MutualSecret = cluster.Target, h.MutualSecret
		}
		all = append(all, c)
	}
	return all
}

// admitsWithCredentialsOnly requires that each host logs in and discovers with its credentials, and not otherwise.
func admitsWithCredentialsOnly(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	all := []logins.Credentials{{Initiator: cluster.Initiator + "1"}}
	for _, h := range upgrade.Hosts {
		all = append(all, credentialsOf(h)...)
	}
	for gateway := range c.Gateways {
		portal := c.Portals(gateway)[0]
		for _, how := range []func(logins.Attempt, context.Context, string, string) error{logins.Attempt.Login, logins.Attempt.Discover} {
			if err := logins.Check(ctx, how, portal, cluster.Target, all...); err != nil {
				t.Error(err)
			}
		}
	}
}

// holdsWhatWasWritten reads every volume through a gateway.
func holdsWhatWasWritten(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) {
	t.Helper()
	var session *initiator.Session
	if err := netns.Until(ctx, func() (err error) { // the state that WaitReady reads may precede the upgrade
		session, err = c.Login(ctx, upgrade.Registrant, gateway)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for volume := range c.Volumes {
		holds(ctx, t, session, uint16(volume), volume, upgrade.Content(volume))
	}
}

func holds(ctx context.Context, t *testing.T, session *initiator.Session, lun uint16, volume, content int) {
	t.Helper()
	for _, read := range upgrade.Reads(lun, volume, content) {
		var data []byte
		if err := netns.Until(ctx, func() (err error) { // there may be no owner yet
			data, err = session.Good(ctx, read.Command)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, read.Data) {
			t.Errorf("LUN %d, CDB % x: read %.40q, not %.40q", lun, read.Command.CDB, data, read.Data)
		}
	}
}

// reservedAsBefore requires the registrations and the reservation of release 880afa1, through a gateway.
func reservedAsBefore(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) {
	t.Helper()
	data, err := login(ctx, t, c, upgrade.Holder, gateway).Good(ctx, initiator.ReservationKeys(upgrade.Reserved))
	if err != nil {
		t.Fatal(err)
	}
	var keys []byte
	for at := 8; at+8 <= len(data); at += 8 { // SPC-5 table 205: 8 bytes, the last of which is the key here
		keys = append(keys, data[at+7])
	}
	slices.Sort(keys)
	if want := []byte{upgrade.HolderKey, upgrade.HolderKey, upgrade.RegistrantKey, upgrade.RegistrantKey}; !bytes.Equal(keys, want) {
		t.Errorf("by %s there are the keys % x, not % x", cluster.GatewayName(gateway), keys, want)
	}
	command := upgrade.Writes(upgrade.Reserved, upgrade.Reserved, upgrade.Content(upgrade.Reserved))[0]
	for number, status := range map[int]byte{upgrade.Holder: initiator.StatusGood, upgrade.Registrant: initiator.StatusGood,
		upgrade.Stranger: initiator.StatusReservationConflict} {
		session := login(ctx, t, c, number, gateway)
		var got byte
		_, err := session.Good(ctx, command)
		var answer *initiator.AnswerError
		if errors.As(err, &answer) {
			got = answer.Response.Status
		} else if err != nil {
			t.Fatal(err)
		}
		if got != status {
			t.Errorf("by %s, a write of host %d is answered with status %02x, not %02x", cluster.GatewayName(gateway), number, got, status)
		}
	}
}

// systemID returns the system id of the control plane; each gateway must have stored it.
func systemID(ctx context.Context, t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	text, err := c.Control(ctx, "status", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ ControlPlane struct{ SystemID string } }
	if err := json.Unmarshal(text, &status); err != nil || status.ControlPlane.SystemID == "" {
		t.Fatalf("no system id: %v: %s", err, text)
	}
	for i := range c.Gateways {
		state := filepath.Join(c.Directory, cluster.GatewayName(i)+".state", "desired-state")
		if err := netns.Until(ctx, func() error {
			if text, err := os.ReadFile(state); err != nil || !bytes.Contains(text, []byte(status.ControlPlane.SystemID)) {
				return fmt.Errorf("%s has not stored system id %s: %w", state, status.ControlPlane.SystemID, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	return status.ControlPlane.SystemID
}

// closedAccess returns the hosts that events report as affected, by reason.
func closedAccess(ctx context.Context, t *testing.T, c *cluster.Cluster) map[string][]string {
	t.Helper()
	text, err := c.Control(ctx, "events", "--last", "1000", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Items []struct{ Reason, Name string }
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Items) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	found := map[string][]string{}
	for _, event := range all.Items {
		found[event.Reason] = append(found[event.Reason], event.Name)
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

// isUpgraded requires everything that must hold once all programs are of the present release.
func isUpgraded(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	waitFor(ctx, t, c, "pool", cluster.PoolName, "Ready", "TRUE", "Reachable")
	for volume := range c.Volumes {
		waitFor(ctx, t, c, "volume", cluster.VolumeName(volume), "Ready", "TRUE", "Ready")
	}
	if err := netns.Until(ctx, func() error { // the pool's condition may be the stored one
		_, err := os.Stat(filepath.Join(c.Pool, ".sluice", "pool"))
		return err
	}); err != nil {
		t.Fatalf("the pool has no marker: %v", err)
	}
	for gateway := range c.Gateways {
		holdsWhatWasWritten(ctx, t, c, gateway)
		reservedAsBefore(ctx, t, c, gateway)
	}
	found := closedAccess(ctx, t, c)
	for reason, hosts := range map[string][]string{"ChapRequired": {"nameless"}, "DiscoveryRequiresChap": {"mutual", "named", "nameless"}} {
		if !slices.Equal(found[reason], hosts) {
			t.Errorf("%s is reported of %v, affected are %v", reason, found[reason], hosts)
		}
	}
}

func TestAClusterOf880afa1GoesOnAfterTheUpgradeOfControlPlaneThenGateways(t *testing.T) {
	c, ctx, shares := upgraded(t)
	if err := errors.Join(c.StartControlPlane(ctx), c.StartGateways(ctx)); err != nil {
		t.Fatal(err)
	}
	isUpgraded(ctx, t, c)
	admitsWithCredentialsOnly(ctx, t, c)
	system := systemID(ctx, t, c)
	// A planned move and a restart of everything must neither change this nor report anything again.
	owner, err := c.Owner(ctx, upgrade.Reserved)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bring(ctx, upgrade.Reserved, 1-owner); err != nil {
		t.Fatal(err)
	}
	restart(t, c, func() error {
		return errors.Join(c.Replicas[0].Stop(20*time.Second), c.Replicas[0].Start())
	})
	isUpgraded(ctx, t, c)
	if again := systemID(ctx, t, c); again != system {
		t.Errorf("the system id was %s, and is %s now", system, again)
	}
	if !shares {
		t.Log("the snapshot is not read: no XFS here")
		return
	}
	control(ctx, t, c, "volume create copy --pool "+cluster.PoolName+" --from-snapshot "+upgrade.Snapshot+" --size 4Mi --wait")
	const copies = "iqn.2026-11.dev.sluice:copies"
	control(ctx, t, c, "target create copies --iqn "+copies+" --host host-1 --lun 0=copy --wait")
	session, err := initiator.Login(ctx, initiator.Options{Portal: c.Portals(0)[0], Target: copies, Initiator: cluster.Initiator + "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	holds(ctx, t, session, 0, 0, 0)
}

// Gateways of the present release use the state that release 880afa1 saved, until there is a control plane. They admit no host
// without credentials.
func TestAClusterOf880afa1GoesOnAfterTheUpgradeOfGatewaysThenControlPlane(t *testing.T) {
	c, ctx, _ := upgraded(t)
	if err := c.StartGateways(ctx); err != nil {
		t.Fatal(err)
	}
	for gateway := range c.Gateways {
		portal := c.Portals(gateway)[0]
		if err := netns.Until(ctx, func() error {
			return logins.Attempt{Name: "open", Initiator: cluster.Initiator + "1", Admitted: true}.Login(ctx, portal, cluster.Target)
		}); err != nil {
			t.Fatal(err)
		}
		for _, h := range upgrade.Hosts {
			for _, c := range credentialsOf(h) {
				attempt := logins.Attempt{Name: "no CHAP", Initiator: c.Initiator}
				if err := attempt.Login(ctx, portal, cluster.Target); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for volume := range c.Volumes { // volumes are spread over the gateways in this order
		session := login(ctx, t, c, upgrade.Registrant, volume%len(c.Gateways))
		holds(ctx, t, session, uint16(volume), volume, upgrade.Content(volume))
	}
	if err := c.StartControlPlane(ctx); err != nil {
		t.Fatal(err)
	}
	isUpgraded(ctx, t, c)
	admitsWithCredentialsOnly(ctx, t, c)
	systemID(ctx, t, c)
}

// A directory of release 880afa1 has no marker. It is accepted as the pool only if it contains all known images.
func TestAPoolOf880afa1WithoutAnImageIsNotMarkedUntilTheImageIsThere(t *testing.T) {
	c, ctx, _ := upgraded(t)
	images, err := filepath.Glob(filepath.Join(c.Pool, "volume-*"))
	if err != nil || len(images) != c.Volumes {
		t.Fatalf("%v: %v", images, err)
	}
	away := filepath.Join(c.Directory, "away")
	if err := errors.Join(copyOut(images[0], away), c.StartControlPlane(ctx), c.StartGateways(ctx)); err != nil {
		t.Fatal(err)
	}
	message := waitFor(ctx, t, c, "pool", cluster.PoolName, "Ready", "FALSE", "PoolNotIdentified")
	if !strings.Contains(message, filepath.Base(images[0])) {
		t.Errorf("the pool's condition does not name the image: %s", message)
	}
	if _, err := os.Stat(filepath.Join(c.Pool, ".sluice", "pool")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pool has a marker: %v", err)
	}
	if err := copyOut(away, images[0]); err != nil {
		t.Fatal(err)
	}
	isUpgraded(ctx, t, c)
}

// copyOut moves a file, even to another file system.
func copyOut(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, data, 0o600), os.Remove(from))
}
