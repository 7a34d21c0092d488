package node

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// upgrading is a server of a system on which packages can be upgraded.
type upgrading struct {
	*fakeServer
	cluster *fakeCluster
	// findings are those of each look, the last one from then on.
	findings [][]string
	looks    int
	// newer is the version that apt-get installs.
	newer string
}

func newUpgrading(t *testing.T) *upgrading {
	t.Helper()
	u := &upgrading{fakeServer: newFakeServer(t), newer: "1.2.4"}
	u.cluster = &fakeCluster{server: u.fakeServer, objects: map[string]proto.Message{}}
	plan := &Plan{Name: "a", Address: "192.0.2.1", Fabrics: map[string]string{DefaultFabric: "192.0.2.1/24"}, Member: true}
	if _, err := u.writeRecord(plan); err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{backupTimer, "sluice-gateway@a-1.service", "sluice-gateway@a-2.service"} {
		u.units[unit] = true
	}
	run := u.Run
	u.Run = func(ctx context.Context, program string, arguments ...string) (string, error) {
		call := strings.Join(append([]string{program}, arguments...), " ")
		switch {
		case program == "apt-get" && arguments[0] == "install":
			for _, name := range packages {
				u.version[name] = u.newer
			}
			return "", u.change(call)
		case program == "apt-get", call == "systemctl start sluice-backup.service":
			return "", u.change(call)
		}
		return run(ctx, program, arguments...)
	}
	return u
}

func (u *upgrading) upgrade(files ...string) (bool, error) {
	work := &Upgrade{System: u.System, Cluster: u.cluster, Packages: files, Findings: func(context.Context) ([]string, error) {
		u.looks++
		if len(u.findings) == 0 {
			return nil, nil
		}
		return u.findings[min(u.looks, len(u.findings))-1], nil
	}}
	return work.Run(context.Background(), io.Discard)
}

func TestAnUpgradeSavesTheStoreAndInstallsThePackagesOfTheRepository(t *testing.T) {
	u := newUpgrading(t)
	u.findings = [][]string{nil, {"GatewayDown gateway a-1: it starts"}, nil}
	if changed, err := u.upgrade(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	want := []string{"systemctl start sluice-backup.service", "apt-get update -q",
		"apt-get install -q -y --no-install-recommends --only-upgrade sluice-controlplane sluice-gateway sluicectl"}
	if !slices.Equal(u.calls, want) {
		t.Errorf("it ran %q", u.calls)
	}
	if u.looks != 3 || !u.cluster.waited {
		t.Errorf("it ended before the gateways served again: %d looks, waited %v", u.looks, u.cluster.waited)
	}
	if changed, err := u.upgrade(); changed || err != nil {
		t.Errorf("a second run: %v, %v", changed, err)
	}
}

func TestAnUpgradeInstallsFilesByTheirPath(t *testing.T) {
	u := newUpgrading(t)
	if _, err := u.upgrade("sluicectl_1.2.4_amd64.deb"); err != nil {
		t.Fatal(err)
	}
	if last := u.calls[len(u.calls)-1]; !strings.HasSuffix(last, "/sluicectl_1.2.4_amd64.deb") || strings.Contains(last, "--only-upgrade") {
		t.Errorf("it ran %q", last)
	}
}

func TestAFindingForbidsAnUpgrade(t *testing.T) {
	u := newUpgrading(t)
	u.findings = [][]string{{"GatewayDown gateway b-1: it does not run"}}
	_, err := u.upgrade()
	if err == nil || !strings.Contains(err.Error(), "GatewayDown gateway b-1") || !strings.Contains(err.Error(), "--ignore") {
		t.Errorf("%v", err)
	}
	if len(u.calls) != 0 {
		t.Errorf("it ran %q", u.calls)
	}
}

func TestAnInterruptedUpgradeContinues(t *testing.T) {
	u := newUpgrading(t)
	u.failAt = 3
	if _, err := u.upgrade(); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	u.failAt = 0
	if _, err := u.upgrade(); err != nil {
		t.Fatal(err)
	}
}
