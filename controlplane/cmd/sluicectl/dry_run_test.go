package main

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (l *live) revision() int64 {
	l.t.Helper()
	revision, err := l.Revision(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return revision
}

func TestADryRunOfDrainMoveAndEvictIsValidatedAndChangesNothing(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	modify(l, "shop", func(o *model.Target) { o.Status.PathSet = []uint32{1} })
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	l.must("volume", "create", "spare", "--pool", "nvme", "--size", "1Gi")
	before := l.revision()
	for _, command := range []string{"gateway drain gw-1 --wait", "gateway undrain gw-2", "volume move orders", "volume move orders --to gw-1",
		"session evict gw-1.1.00023d000001"} {
		out := l.must(append(strings.Fields(command), "--dry-run")...)
		if !strings.Contains(out, "(dry run: nothing was changed)") {
			t.Errorf("%s: %s", command, out)
		}
	}
	for command, code := range map[string]int{"gateway drain none": exitNotFound, "volume move none": exitNotFound,
		"volume move orders --to gw-2": exitNotNow, "volume move spare": exitNotNow,
		"session evict gw-1.9.00023d000001": exitNotFound} {
		if _, err := l.run(append(strings.Fields(command), "--dry-run")...); exitCode(err) != code {
			t.Errorf("%s: %v", command, err)
		}
	}
	if after := l.revision(); after != before {
		t.Errorf("something was stored: revision %d, it was %d", after, before)
	}
}

func TestAControlPlaneWithoutADryRunOfARequestIsNotAskedForOne(t *testing.T) {
	l := start(t)
	connection, err := client.Connect(client.Options{Endpoints: []string{l.address}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	err = canDryRun(t.Context(), connection, &pb.GetGatewayRequest{}, true) // it has no dry run, as other requests of an older release
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "upgrade it first") {
		t.Error(err)
	}
	if err := canDryRun(t.Context(), connection, &pb.MoveVolumeRequest{}, true); err != nil {
		t.Error(err)
	}
}
