package ceph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
)

// volumesOf returns the volumes that a gateway owns.
func volumesOf(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) []int {
	t.Helper()
	var all []int
	for volume := range c.Volumes {
		if ownerOf(ctx, t, c, volume) == gateway {
			all = append(all, volume)
		}
	}
	return all
}

// takenOver waits until other gateways serve these volumes.
func takenOver(ctx context.Context, t *testing.T, c *cluster.Cluster, volumes []int, from int) {
	t.Helper()
	for _, volume := range volumes {
		until(ctx, t, func() error {
			if _, err := c.Owned(ctx, volume); err != nil {
				return err
			}
			owner, err := c.Owner(ctx, volume)
			if err == nil && owner == from {
				err = fmt.Errorf("%s is %s's still", cluster.VolumeName(volume), cluster.GatewayName(from))
			}
			return err
		})
	}
}

// blocklisted returns the blocklisted clients. A fenced gateway adds one, regardless of the number of its volumes.
func blocklisted(ctx context.Context, t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	clients, err := c.Blocklist(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// R2: a killed gateway is blocklisted once, regardless of its volumes, and its acknowledged writes are preserved.
func TestVolumesOfAKilledGatewayAreTakenOverAndNothingAcknowledgedIsLost(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 6})
	w := write(ctx, t, c)
	killed := ownerOf(ctx, t, c, 0)
	volumes := volumesOf(ctx, t, c, killed)
	if err := c.Gateways[killed].Kill(); err != nil {
		t.Fatal(err)
	}
	takenOver(ctx, t, c, volumes, killed)
	w.more(ctx, 20)
	if clients := blocklisted(ctx, t, c); len(clients) != 1 {
		t.Errorf("%d volumes had to be taken over, and these clients are blocklisted: %v", len(volumes), clients)
	}
	if err := c.Gateways[killed].Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 20)
	w.end(ctx)
}

// R2, R4: a gateway that was suspended during its own replacement writes nothing when it resumes, and returns as a new client.
func TestAGatewayThatSleptThroughItsReplacementWritesNothingMoreAndComesBack(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 3})
	w := write(ctx, t, c)
	asleep := ownerOf(ctx, t, c, 0)
	volumes := volumesOf(ctx, t, c, asleep)
	if err := c.Gateways[asleep].Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	takenOver(ctx, t, c, volumes, asleep)
	w.more(ctx, 50)
	if err := c.Gateways[asleep].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 50)
	before := blocklisted(ctx, t, c)
	control(ctx, t, c, "volume", "move", cluster.VolumeName(0), "--to", cluster.GatewayName(asleep), "--wait")
	if owner := ownerOf(ctx, t, c, 0); owner != asleep {
		t.Errorf("%s owns it", cluster.GatewayName(owner))
	}
	w.more(ctx, 20)
	w.end(ctx)
	if clients := blocklisted(ctx, t, c); !slices.Equal(clients, before) {
		t.Errorf("a planned move has blocklisted a client: %v, before %v", clients, before)
	}
	if unexpected := c.Gateways[asleep].Unexpected(); len(unexpected) > 0 {
		t.Errorf("it ended: %v", unexpected)
	}
}

// R7: a planned move is agreed on; no gateway is fenced, and no host sees an error.
func TestAPlannedMoveBlocklistsNoClientAndNoHostSeesAnError(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 2})
	w := write(ctx, t, c)
	for range 3 {
		for gateway := range c.Gateways {
			control(ctx, t, c, "volume", "move", cluster.VolumeName(0), "--to", cluster.GatewayName(gateway), "--wait")
			w.more(ctx, 2)
		}
	}
	w.end(ctx)
	if clients := blocklisted(ctx, t, c); len(clients) != 0 {
		t.Errorf("blocklisted: %v", clients)
	}
	for _, path := range w.multipath.Paths {
		if lost := path.Losses(); len(lost) > 0 {
			t.Errorf("%s: %v", path.Portal, lost)
		}
	}
}

// A gateway whose client an administrator has blocklisted drops its hosts, and returns as a new client.
func TestAGatewayThatAnAdministratorBlocklistedComesBackByItself(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 2})
	w := write(ctx, t, c)
	image, err := c.ImageOf(ctx, cluster.VolumeName(0))
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := c.Owned(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	holder := holderOf(ctx, t, c, image)
	rados(ctx, t, c, "ceph osd blocklist add "+holder+" 3600")
	until(ctx, t, func() error {
		now, err := c.Owned(ctx, 0)
		if err == nil && now == epoch {
			err = errors.New("nothing has changed")
		}
		return err
	})
	w.more(ctx, 20)
	until(ctx, t, func() error {
		if now := holderOf(ctx, t, c, image); now == holder {
			return errors.New(now + " has it still")
		}
		return nil
	})
	w.end(ctx)
	for _, gateway := range c.Gateways {
		if unexpected := gateway.Unexpected(); len(unexpected) > 0 {
			t.Errorf("%s ended: %v", gateway.Name, unexpected)
		}
	}
}

// holderOf returns the holder of an image's exclusive lock, as a blocklist names it.
func holderOf(ctx context.Context, t *testing.T, c *cluster.Cluster, image string) string {
	t.Helper()
	for _, line := range strings.Split(rados(ctx, t, c, "rbd lock ls rbd/"+image), "\n") {
		if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], "client.") {
			return words[len(words)-1]
		}
	}
	return ""
}

// R8: reservations outlive the owner of a volume, in Ceph as well.
func TestAReservationOutlivesItsOwner(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 1})
	owner := ownerOf(ctx, t, c, 0)
	other := (owner + 1) % len(c.Gateways)
	mine := login(ctx, t, c, 1, other)
	for _, command := range []initiator.Command{initiator.PersistentReserve(0, initiator.PRRegister, 0, 0, 0x11),
		initiator.PersistentReserve(0, initiator.PRReserve, initiator.WriteExclusiveRegistrantsOnly, 0x11, 0)} {
		if _, err := mine.Good(ctx, command); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Gateways[owner].Kill(); err != nil {
		t.Fatal(err)
	}
	takenOver(ctx, t, c, []int{0}, owner)
	theirs := login(ctx, t, c, 2, (owner+2)%len(c.Gateways))
	until(ctx, t, func() error {
		_, err := theirs.Good(ctx, initiator.Write(0, 0, content(1), blockSize))
		var answer *initiator.AnswerError
		if errors.As(err, &answer) && answer.Response.Status == initiator.StatusReservationConflict {
			return nil
		}
		return fmt.Errorf("no conflict: %w", err)
	})
	if _, err := mine.Good(ctx, initiator.Write(0, 0, content(2), blockSize)); err != nil {
		t.Error(err)
	}
}

// login opens a session of a host, by number, to a gateway's portal on the red fabric.
func login(ctx context.Context, t *testing.T, c *cluster.Cluster, number, gateway int) *initiator.Session {
	t.Helper()
	session, err := c.Login(ctx, number, gateway)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}
