package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	// sessions are those of each look on a gateway, the last one from then on.
	sessions map[string][]int
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
		process, isGateway := map[string]string{"sluice-gateway@a-1.service": "1", "sluice-gateway@a-2.service": "2"}[arguments[len(arguments)-1]]
		switch {
		case program == "env":
			for _, name := range packages {
				if u.version[name] != u.newer {
					u.version[name] = u.newer
					u.program("1", " (deleted)")
					u.program("2", " (deleted)")
				}
			}
			return "", u.change(call)
		case isGateway && strings.Contains(call, "MainPID"):
			return process + "\n", nil
		case isGateway && arguments[0] == "restart":
			u.program(process, "")
			return "", u.change(call)
		case program == "apt-get", call == "systemctl start sluice-backup.service":
			return "", u.change(call)
		}
		return run(ctx, program, arguments...)
	}
	u.program("1", "")
	u.program("2", "")
	return u
}

// program sets the link to the program of a process.
func (u *upgrading) program(process, replaced string) {
	u.t.Helper()
	link := u.path("/proc/" + process + "/exe")
	_ = os.Remove(link)
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("/usr/bin/sluice-gateway"+replaced, link)); err != nil {
		u.t.Fatal(err)
	}
}

func (u *upgrading) upgrade(files ...string) (bool, error) {
	work := &Upgrade{System: u.System, Cluster: u.cluster, Packages: files, Well: 1, Findings: func(context.Context) ([]string, error) {
		u.looks++
		if len(u.findings) == 0 {
			return nil, nil
		}
		return u.findings[min(u.looks, len(u.findings))-1], nil
	}, Sessions: func(_ context.Context, gateway string) (int, error) {
		left := u.sessions[gateway]
		if len(left) == 0 {
			return 0, nil
		}
		if len(left) > 1 {
			u.sessions[gateway] = left[1:]
		}
		u.calls = append(u.calls, fmt.Sprintf("%s has %d sessions", gateway, left[0]))
		return left[0], nil
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
		"env SLUICE_RESTART=no apt-get install -q -y --no-install-recommends --only-upgrade sluice-controlplane sluice-gateway sluicectl",
		"systemctl restart sluice-gateway@a-1.service", "systemctl restart sluice-gateway@a-2.service"}
	if !slices.Equal(u.calls, want) {
		t.Errorf("it ran %q", u.calls)
	}
	if u.looks < 4 || !u.cluster.waited {
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
	if last := u.calls[1]; !strings.HasSuffix(last, "/sluicectl_1.2.4_amd64.deb") || strings.Contains(last, "--only-upgrade") {
		t.Errorf("it ran %q", last)
	}
}

func TestAGatewayStartsAgainOnceTheHostsOfTheOneBeforeHaveReturned(t *testing.T) {
	u := newUpgrading(t)
	u.sessions = map[string][]int{"a-1": {2, 0, 1, 2}}
	if _, err := u.upgrade("sluicectl_1.2.4_amd64.deb"); err != nil {
		t.Fatal(err)
	}
	want := []string{"a-1 has 2 sessions", "systemctl restart sluice-gateway@a-1.service", "a-1 has 0 sessions", "a-1 has 1 sessions",
		"a-1 has 2 sessions", "systemctl restart sluice-gateway@a-2.service"}
	if got := u.calls[2:]; !slices.Equal(got, want) {
		t.Errorf("it did %q", got)
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
	u.failAt = 4 // the packages are installed, and the first gateway is not started again
	if _, err := u.upgrade(); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	u.failAt = 0
	u.program("1", " (deleted)")
	if changed, err := u.upgrade(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if last := u.calls[len(u.calls)-1]; last != "systemctl restart sluice-gateway@a-2.service" {
		t.Errorf("it ran %q", u.calls)
	}
}
