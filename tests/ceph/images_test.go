package ceph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

func writes(ctx context.Context, t *testing.T, session *initiator.Session, lun uint16, number uint64) {
	t.Helper()
	if _, err := session.Good(ctx, initiator.Write(lun, 0, content(number), blockSize)); err != nil {
		t.Fatal(err)
	}
}

// reads waits until a LUN exists and contains a number.
func reads(ctx context.Context, t *testing.T, session *initiator.Session, lun uint16, number uint64) {
	t.Helper()
	until(ctx, t, func() error {
		data, err := session.Good(ctx, initiator.Read(lun, 0, 1, blockSize))
		if err == nil && string(data) != string(content(number)) {
			err = fmt.Errorf("LUN %d holds % x…, not %d", lun, data[:8], number)
		}
		return err
	})
}

// mapped maps these volumes in the target, by LUN.
func mapped(ctx context.Context, t *testing.T, c *cluster.Cluster, volumes map[int]string) {
	t.Helper()
	var luns []string
	for lun, volume := range volumes {
		luns = append(luns, fmt.Sprintf("{id: %d, volume: %s}", lun, volume))
	}
	file := filepath.Join(c.Directory, "target.yaml")
	text := fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, gatewayPool: default, paths: %d, "+
		"hosts: [host-1], luns: [%s]}\n", cluster.Target, c.Options.Gateways, strings.Join(luns, ", "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	control(ctx, t, c, "apply", "-f", file)
}

// exists reports whether the pool has an image of that name.
func exists(ctx context.Context, t *testing.T, c *cluster.Cluster, image string) bool {
	t.Helper()
	for _, name := range strings.Fields(rados(ctx, t, c, "rbd ls rbd")) {
		if name == image {
			return true
		}
	}
	return false
}

func imageOf(ctx context.Context, t *testing.T, c *cluster.Cluster, volume string) string {
	t.Helper()
	image, err := c.ImageOf(ctx, volume)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// The life of a volume in Ceph: creation, growth in use, copies by snapshot and by clone, rollback, deletion.
func TestImagesAreManagedByTheGatewaysThatServeThem(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1})
	name := cluster.VolumeName(0)
	image := imageOf(ctx, t, c, name)
	session := login(ctx, t, c, 1, 0)
	writes(ctx, t, session, 0, 1)

	control(ctx, t, c, "volume", "resize", name, "--size", "32Mi", "--wait")
	writes(ctx, t, session, 0, 1)
	until(ctx, t, func() error {
		_, err := session.Good(ctx, initiator.Write(0, 33<<20/blockSize-2049, content(9), blockSize))
		return err
	})

	control(ctx, t, c, "snapshot", "create", "before", "--volume", name, "--wait")
	writes(ctx, t, session, 0, 2)
	control(ctx, t, c, "volume", "create", "of-snapshot", "--pool", cluster.PoolName, "--size", "32Mi", "--from-snapshot", "before", "--wait")
	control(ctx, t, c, "volume", "create", "of-volume", "--pool", cluster.PoolName, "--size", "32Mi", "--from-volume", name, "--wait")
	mapped(ctx, t, c, map[int]string{0: name, 1: "of-snapshot", 2: "of-volume"})
	reads(ctx, t, session, 0, 2)
	reads(ctx, t, session, 1, 1)
	reads(ctx, t, session, 2, 2)
	writes(ctx, t, session, 2, 3)
	reads(ctx, t, session, 0, 2)
	// A copy of the volume itself finally shares nothing with it, so the volume can be deleted.
	until(ctx, t, func() error {
		if info := rados(ctx, t, c, "rbd info rbd/"+imageOf(ctx, t, c, "of-volume")); strings.Contains(info, "parent:") {
			return fmt.Errorf("it has a parent: %s", info)
		}
		return nil
	})

	if _, err := c.Control(ctx, "snapshot", "rollback", "before"); err == nil || !strings.Contains(err.Error(), "Target cluster") {
		t.Errorf("a rollback under a host: %v", err)
	}
	mapped(ctx, t, c, map[int]string{1: "of-snapshot", 2: "of-volume"})
	until(ctx, t, func() error {
		_, err := c.Control(ctx, "snapshot", "rollback", "before", "--wait")
		return err
	})
	mapped(ctx, t, c, map[int]string{0: name, 1: "of-snapshot", 2: "of-volume"})
	reads(ctx, t, session, 0, 1)

	mapped(ctx, t, c, map[int]string{2: "of-volume"})
	clone := imageOf(ctx, t, c, "of-snapshot")
	for _, words := range []string{"volume delete of-snapshot", "snapshot delete before", "volume delete " + name} {
		control(ctx, t, c, append(strings.Fields(words), "--wait")...)
	}
	for _, gone := range []string{image, clone} {
		if exists(ctx, t, c, gone) {
			t.Errorf("%s is there still", gone)
		}
	}
	reads(ctx, t, session, 2, 3)
}

func TestAnImageIsAdoptedWithWhatItHoldsAndAnotherOneRefused(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1})
	file := filepath.Join(c.Directory, "content")
	if err := os.WriteFile(file, append(content(7), make([]byte, 4<<20-blockSize)...), 0o600); err != nil {
		t.Fatal(err)
	}
	rados(ctx, t, c, "rbd import --image-feature layering,exclusive-lock "+file+" rbd/foreign")
	control(ctx, t, c, "volume", "create", "adopted", "--pool", cluster.PoolName, "--size", "4Mi", "--from-image", "foreign", "--wait")
	mapped(ctx, t, c, map[int]string{5: "adopted"})
	reads(ctx, t, login(ctx, t, c, 1, 1), 5, 7)
	if exists(ctx, t, c, "foreign") || !exists(ctx, t, c, imageOf(ctx, t, c, "adopted")) {
		t.Error("it has its old name still")
	}

	rados(ctx, t, c, "rbd create --size 4M --image-feature layering,exclusive-lock,object-map rbd/unfit")
	control(ctx, t, c, "volume", "create", "refused", "--pool", cluster.PoolName, "--size", "4Mi", "--from-image", "unfit")
	until(ctx, t, func() error {
		if output := control(ctx, t, c, "volume", "get", "refused", "-o", "json"); !strings.Contains(output, "object-map") {
			return fmt.Errorf("nothing is said of object-map: %s", output)
		}
		return nil
	})
}

func TestADeletedVolumeGoesToTheTrashOrStaysAsRequestedAndOrphansAreReported(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1})
	images := map[string]string{}
	for _, policy := range []string{"trash", "retain"} {
		control(ctx, t, c, "volume", "create", policy, "--pool", cluster.PoolName, "--size", "4Mi", "--"+policy, "--wait")
		images[policy] = imageOf(ctx, t, c, policy)
		control(ctx, t, c, "volume", "delete", policy, "--wait")
	}
	if exists(ctx, t, c, images["trash"]) || !strings.Contains(rados(ctx, t, c, "rbd trash ls rbd"), images["trash"]) {
		t.Error("it is not in the trash")
	}
	if !exists(ctx, t, c, images["retain"]) {
		t.Error("an image that should stay is gone")
	}
	// A pool is checked for orphans as soon as gateways reach it.
	spec, err := c.CephPool("rbd", "")
	if err != nil {
		t.Fatal(err)
	}
	create(ctx, t, c, "again", spec)
	until(ctx, t, func() error {
		var pool struct {
			Status struct{ OrphanedImages []string }
		}
		if err := json.Unmarshal([]byte(control(ctx, t, c, "pool", "get", "again", "-o", "json")), &pool); err != nil {
			t.Fatal(err)
		}
		for _, image := range pool.Status.OrphanedImages {
			if image == images["retain"] {
				return nil
			}
		}
		return fmt.Errorf("reported are %v", pool.Status.OrphanedImages)
	})
}

func create(ctx context.Context, t *testing.T, c *cluster.Cluster, name, spec string) {
	t.Helper()
	file := filepath.Join(c.Directory, name+".yaml")
	text := fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: StoragePool\nmeta: {name: %s}\nspec: {%s}\n", name, spec)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	control(ctx, t, c, "apply", "-f", file)
}

// For an unusable pool, the condition names the problem.
func TestAPoolThatCannotBeUsedSaysWhy(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1})
	good, err := c.CephPool("rbd", "")
	if err != nil {
		t.Fatal(err)
	}
	missing, _ := c.CephPool("none", "")
	wrong, _ := c.CephPool("rbd", "AQBZqyBpAAAAABAAq0sQm2PnbWLpQMXXHYXl2A==")
	pools := map[string]struct{ spec, words string }{
		"missing":     {missing, "there is no pool none"},
		"wrong-key":   {wrong, "refused client.gateway"},
		"unreachable": {strings.Replace(good, c.Network.Address(cluster.CephNode, cluster.Storage), c.Network.HostAddress(cluster.Storage), 1), "no monitor answered"},
	}
	for name, wanted := range pools {
		create(ctx, t, c, name, wanted.spec)
	}
	for name, wanted := range pools {
		output := ""
		if err := netns.Until(ctx, func() error {
			shown, err := c.Control(ctx, "pool", "get", name, "-o", "json")
			if err != nil {
				return fmt.Errorf("%w; before it said %s", err, output)
			}
			if output = string(shown); !strings.Contains(output, wanted.words) {
				return fmt.Errorf("it says %s", output)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
