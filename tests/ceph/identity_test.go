package ceph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
)

// condition waits until a condition of an object has a reason, and returns its message.
func condition(ctx context.Context, t *testing.T, c *cluster.Cluster, kind, name, reason string) string {
	t.Helper()
	var message string
	until(ctx, t, func() error {
		text, err := c.Control(ctx, kind, "get", name, "-o", "json")
		if err != nil {
			return err
		}
		var found struct {
			Status struct {
				Conditions []struct{ Type, Reason, Message string }
			}
		}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if message = condition.Message; condition.Type == "Ready" && condition.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%s %s is not %s: %+v", kind, name, reason, found.Status.Conditions)
	})
	return message
}

// A Ceph pool is deleted and created again under its name. Until an administrator confirms that, gateways create nothing in it, and
// the condition of the lost volume names the cause.
func TestAPoolThatWasCreatedAgainIsRefusedUntilItIsAdopted(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1})
	condition(ctx, t, c, "pool", cluster.PoolName, "Reachable")
	until(ctx, t, func() error {
		if shown := control(ctx, t, c, "pool", "get", cluster.PoolName, "-o", "json"); !strings.Contains(shown, `"marker"`) {
			return fmt.Errorf("no gateway has marked it: %s", shown)
		}
		return nil
	})
	mapped(ctx, t, c, nil)
	for _, words := range []string{"ceph osd pool delete rbd rbd --yes-i-really-really-mean-it", "ceph osd pool create rbd 8 8 replicated",
		"rbd pool init rbd"} {
		rados(ctx, t, c, words)
	}
	message := condition(ctx, t, c, "pool", cluster.PoolName, "PoolNotIdentified")
	for _, words := range []string{"pool rbd of Ceph has no marker", "sluicectl pool adopt"} {
		if !strings.Contains(message, words) {
			t.Errorf("the condition does not say %q: %s", words, message)
		}
	}
	control(ctx, t, c, "volume", "create", "late", "--pool", cluster.PoolName, "--size", "16Mi")
	condition(ctx, t, c, "volume", "late", "PoolNotIdentified")
	condition(ctx, t, c, "volume", cluster.VolumeName(0), "PoolNotIdentified")
	if images := rados(ctx, t, c, "rbd ls rbd"); images != "" {
		t.Errorf("it was written to: %s", images)
	}
	control(ctx, t, c, "pool", "adopt", cluster.PoolName, "--wait")
	condition(ctx, t, c, "volume", "late", "Ready")
	if !exists(ctx, t, c, imageOf(ctx, t, c, "late")) {
		t.Error("it has no image")
	}
}

// An image that was deleted and created again, and one that lost its end, are not served.
func TestAReplacedOrTruncatedImageIsRefusedAndTheVolumeSaysWhy(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1})
	name := cluster.VolumeName(0)
	control(ctx, t, c, "volume", "create", "other", "--pool", cluster.PoolName, "--size", "32Mi", "--wait")
	mapped(ctx, t, c, map[int]string{0: name, 1: "other"})
	session := login(ctx, t, c, 1, 0)
	writes(ctx, t, session, 0, 1)
	until(ctx, t, func() error {
		_, err := session.Good(ctx, initiator.Write(1, 0, content(1), blockSize))
		return err
	})
	replaced, truncated := "rbd/"+imageOf(ctx, t, c, name), "rbd/"+imageOf(ctx, t, c, "other")
	mapped(ctx, t, c, nil)
	for _, words := range []string{"rbd rm " + replaced, "rbd create --size 16M --image-feature layering,exclusive-lock " + replaced,
		"rbd resize --allow-shrink --no-progress --size 16M " + truncated} {
		until(ctx, t, func() error { // after its owner has closed it
			_, err := c.Rados(ctx, strings.Fields(words)...)
			return err
		})
	}
	mapped(ctx, t, c, map[int]string{0: name, 1: "other"})
	for volume, words := range map[string]string{name: "is another image than the volume's", "other": "is 16MiB, recorded are 32MiB"} {
		if message := condition(ctx, t, c, "volume", volume, "OpenFailed"); !strings.Contains(message, words) {
			t.Errorf("the condition does not say %q: %s", words, message)
		}
	}
	if info := rados(ctx, t, c, "rbd info "+truncated); !strings.Contains(info, "size 16 MiB") {
		t.Errorf("the image was changed: %s", info)
	}
}
