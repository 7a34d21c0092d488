package csi_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/tests/cluster"
)

// Nodes to which volumes are published, with the ids that their plugins would announce.
var (
	here  = nodeID("node-1")
	there = nodeID("node-2")
)

func capability(mode csi.VolumeCapability_AccessMode_Mode, block bool) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
	if block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

var (
	alone  = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
	shared = capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, true)
)

// create creates a volume of 16 MiB that is removed with the test.
func create(t *testing.T, name string, as *csi.VolumeCapability, parameters map[string]string) string {
	t.Helper()
	made, err := env.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: name,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20}, VolumeCapabilities: []*csi.VolumeCapability{as}, Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	t.Cleanup(func() {
		if _, err := env.controller.ControllerUnpublishVolume(background, &csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
			t.Error(err)
		}
		if _, err := env.controller.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Error(err)
		}
	})
	return id
}

func publish(t *testing.T, id, node string, as *csi.VolumeCapability, secrets map[string]string) (map[string]string, error) {
	t.Helper()
	done, err := env.controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node,
		VolumeCapability: as, Secrets: secrets})
	return done.GetPublishContext(), err
}

func published(t *testing.T, id, node string, as *csi.VolumeCapability) map[string]string {
	t.Helper()
	found, err := publish(t, id, node, as, nil)
	if err != nil {
		t.Fatalf("publish %s to %s: %v", id, node, err)
	}
	return found
}

func unpublish(t *testing.T, id, node string) {
	t.Helper()
	_, err := env.controller.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code codes.Code, says string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
		t.Errorf("wanted %s with %q, got %v", code, says, err)
	}
}

func TestPortalsAreThoseThatAreThereWhenAVolumeIsPublished(t *testing.T) {
	id := create(t, "resolved", alone, nil)
	both := published(t, id, here, alone)
	for _, portal := range env.AllPortals() {
		if !strings.Contains(both["portals"], portal) {
			t.Errorf("portal %s is not in %v", portal, both)
		}
	}
	if err := env.Drain(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := env.Control(background, "gateway", "undrain", cluster.GatewayName(1)); err != nil {
			t.Error(err)
		}
		if err := env.WaitReady(background); err != nil {
			t.Error(err)
		}
	})
	unpublish(t, id, here)
	one := published(t, id, here, alone)
	for _, portal := range env.Portals(1) {
		if strings.Contains(one["portals"], portal) {
			t.Errorf("portal %s of a gateway that was drained is in %v", portal, one)
		}
	}
	if one["naa"] != both["naa"] || one["iqn"] != both["iqn"] || one["lun"] != both["lun"] {
		t.Errorf("the volume came back as another: %v, then %v", both, one)
	}
}

func TestAVolumeForOneNodeIsNotPublishedToASecond(t *testing.T) {
	id := create(t, "single", alone, nil)
	published(t, id, here, alone)
	_, err := publish(t, id, there, alone, nil)
	refused(t, err, codes.FailedPrecondition, here) // the error names the node that has it
	unpublish(t, id, here)
	published(t, id, there, alone)
}

func TestNodesShareRawBlockVolumesOnlyAndNothingElseWithThem(t *testing.T) {
	_, err := env.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "destroyed", VolumeCapabilities: []*csi.VolumeCapability{
		capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, false)}})
	refused(t, err, codes.InvalidArgument, "raw block")
	id, own := create(t, "shared", shared, nil), create(t, "own", alone, nil)
	mine := published(t, own, here, alone)
	first, second := published(t, id, here, shared), published(t, id, there, shared)
	if !maps.Equal(first, second) {
		t.Errorf("two nodes have a volume in two ways: %v, %v", first, second)
	}
	if mine["iqn"] == first["iqn"] {
		t.Errorf("a volume of one node is in the target that nodes share, %s", first["iqn"])
	}
	unpublish(t, id, here)
	published(t, id, there, shared)
}

func TestTargetsOfSharedVolumesAreUsedAgain(t *testing.T) {
	id := create(t, "first-shared", shared, nil)
	before := published(t, id, here, shared)
	unpublish(t, id, here)
	next := create(t, "next-shared", shared, nil)
	after := published(t, next, there, shared)
	if before["iqn"] != after["iqn"] {
		t.Errorf("another target was made: %s, then %s", before["iqn"], after["iqn"])
	}
	if before["lun"] == after["lun"] {
		t.Errorf("another volume has LUN %s, which hosts may still have a device for", after["lun"])
	}
}

func TestAClassMayNameATarget(t *testing.T) {
	parameters := map[string]string{"target": "cluster"}
	id := create(t, "in-target", alone, parameters)
	if found := published(t, id, here, alone); found["iqn"] != cluster.Target {
		t.Errorf("published in %v", found)
	}
	_, err := publish(t, id, there, alone, nil)
	refused(t, err, codes.FailedPrecondition, here)
	unpublish(t, id, here)
	shown, err := env.Control(t.Context(), "target", "get", "cluster", "-o", "json")
	if err != nil || bytes.Contains(shown, []byte("csi.node-1")) || bytes.Contains(shown, []byte("in-target")) {
		t.Errorf("the target still has the node or the volume: %s %v", shown, err)
	}
}

func TestSecretsAreNeitherLoggedNorPublished(t *testing.T) {
	id := create(t, "secretive", alone, nil)
	secrets := map[string]string{"node.session.auth.username": "node-3", "node.session.auth.password": "correct-horse-battery"}
	found, err := publish(t, id, "node-3/"+initiatorOf("node-3"), alone, secrets)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(env.log)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range found {
		log = append(log, key+"="+value...)
	}
	if bytes.Contains(log, []byte("correct-horse-battery")) {
		t.Error("the secret is shown")
	}
	host, err := env.Control(t.Context(), "host", "get", "csi.node-3", "-o", "json")
	if err != nil || !bytes.Contains(host, []byte(`"passwordSet": true`)) && !bytes.Contains(host, []byte(`"passwordSet":true`)) {
		t.Errorf("the Host has no CHAP secret: %s %v", host, err)
	}
	_, err = publish(t, id, "node-3/"+initiatorOf("node-3"), alone, map[string]string{"node.session.auth.username": "node-3"})
	refused(t, err, codes.InvalidArgument, "12 bytes")
}

// shown checks that each portal of a volume's publication shows the volume.
func shown(t *testing.T, found map[string]string) {
	t.Helper()
	for portal := range strings.SplitSeq(found["portals"], ",") {
		url := fmt.Sprintf("iscsi://%s%%%s@%s/%s/%s", nodeInitiator, secretOf(t, "node-1", found), portal, found["iqn"], found["lun"])
		shown, err := exec.Command("iscsi-inq", "-i", nodeInitiator, "-e", "1", "-c", "131", url).CombinedOutput()
		if err != nil || !strings.Contains(strings.ToLower(strings.ReplaceAll(string(shown), " ", "")), found["naa"]) {
			t.Errorf("LUN %s is not NAA %s by %s: %v: %s", found["lun"], found["naa"], portal, err, shown)
		}
	}
}

func TestEachPortalShowsAVolumeUnderItsNumberAtOnce(t *testing.T) {
	for i := range 6 {
		shown(t, published(t, create(t, fmt.Sprintf("numbered-%d", i), alone, nil), here, alone))
	}
}

// chance is the time in which a publication that must wait could return too early; one that waits passes for any value.
const chance = 3 * time.Second

func TestAPortalThatDoesNotShowTheVolumeYetIsWaitedForOrLeftOut(t *testing.T) {
	for i := range gateways {
		id := create(t, fmt.Sprintf("awaited-%d", i), alone, nil)
		heal, err := env.Network.Partition(cluster.ControlNode, cluster.GatewayName(i), cluster.Internal)
		if err != nil {
			t.Fatal(err)
		}
		heal = sync.OnceValue(heal)
		t.Cleanup(func() {
			if err := errors.Join(heal(), env.WaitReady(background)); err != nil {
				t.Error(err)
			}
		})
		returned := make(chan map[string]string, 1)
		go func() {
			found, err := publish(t, id, here, alone, nil)
			if err != nil {
				t.Error(err)
			}
			returned <- found
		}()
		select {
		case found := <-returned: // while the gateway receives no update
			shown(t, found)
			returned <- found
		case <-time.After(chance):
		}
		if err := heal(); err != nil {
			t.Fatal(err)
		}
		shown(t, <-returned)
		if err := env.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
