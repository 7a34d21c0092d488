package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var errInUse = &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", unix.EADDRINUSE)}

// preflight returns the output of all checks and how many problems there are.
func (f *fakeServer) preflight(options Options) (*Preflight, string, int) {
	f.t.Helper()
	var out strings.Builder
	p := NewPreflight(f.System, options)
	count := p.Run(f.t.Context(), &out)
	return p, out.String(), count
}

func TestASuitableServerHasNoProblem(t *testing.T) {
	f := newFakeServer(t)
	p, out, count := f.preflight(Options{Pools: []string{"/srv/sluice/"}})
	if count != 0 || strings.Contains(out, "problem") || strings.Contains(out, "warning") {
		t.Fatalf("%d problems:\n%s", count, out)
	}
	if p.Plan.Name != "a" || p.Plan.Address != "192.0.2.1" || p.Plan.Fabrics[DefaultFabric] != "192.0.2.1/24" || p.Plan.Pools[0] != "/srv/sluice" {
		t.Errorf("the plan is %+v", p.Plan)
	}
	if !strings.Contains(out, "snapshots and clones share blocks") || !strings.Contains(out, "100Gi free") {
		t.Errorf("reflink and free space are not reported:\n%s", out)
	}
}

// Each failure is reported with what is wrong and how to correct it.
func TestEachCheckOfThePreflightNamesProblemAndRemedy(t *testing.T) {
	for name, one := range map[string]struct {
		spoil   func(*fakeServer)
		options Options
		want    []string
	}{
		"user":    {func(f *fakeServer) { f.UserID = func() int { return 1000 } }, Options{}, []string{"user with id 1000", "sudo"}},
		"systemd": {func(f *fakeServer) { _ = os.RemoveAll(f.path("/run/systemd")) }, Options{}, []string{"systemd does not run", "boot the server with systemd"}},
		"package": {func(f *fakeServer) { delete(f.version, "sluice-gateway") }, Options{}, []string{"not installed: sluice-gateway", "apt-get install"}},
		"version": {func(f *fakeServer) { f.version["sluicectl"] = "1.2.4" }, Options{}, []string{"1.2.4", "sluice-gateway 1.2.3", "one release"}},
		"kernel": {func(f *fakeServer) { f.Kernel = func() (string, error) { return "5.10.0-30-amd64", nil } }, Options{},
			[]string{"the kernel is 5.10.0-30-amd64", "6.1 or newer"}},
		"io_uring setting": {func(f *fakeServer) { f.file(ringSetting, "2\n") }, Options{}, []string{"kernel.io_uring_disabled is 2", "kernel.io_uring_disabled=0"}},
		"io_uring": {func(f *fakeServer) { f.SetUpRing = func() error { return unix.EPERM } }, Options{},
			[]string{"makes no io_uring: operation not permitted", "seccomp"}},
		"io_uring of the kernel": {func(f *fakeServer) { f.SetUpRing = func() error { return unix.ENOSYS } }, Options{}, []string{"CONFIG_IO_URING"}},
		"memlock":                {func(f *fakeServer) { f.memlock = "8388608" }, Options{}, []string{"8388608 bytes", "systemctl cat sluice-gateway@.service"}},
		"name":                   {func(*fakeServer) {}, Options{Name: "Node_1"}, []string{`"Node_1" cannot be the name of a node`, "--name"}},
		"no address": {func(f *fakeServer) {
			f.Addresses = func() ([]netip.Prefix, error) { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}, nil }
		}, Options{}, []string{"loopback addresses only", "--address 127.0.0.1"}},
		"several addresses": {twoAddresses, Options{}, []string{"192.0.2.1, 198.51.100.1", "--address 192.0.2.1"}},
		"foreign address":   {func(*fakeServer) {}, Options{Address: "203.0.113.9"}, []string{"no interface has the address 203.0.113.9", "192.0.2.1"}},
		"no address at all": {func(*fakeServer) {}, Options{Address: "a.example.com"}, []string{"--address a.example.com is not such an address"}},
		"fabric":            {func(*fakeServer) {}, Options{Fabrics: []string{"red"}}, []string{"--fabric red is not a name with a subnet", "NAME=CIDR"}},
		"fabric elsewhere":  {func(*fakeServer) {}, Options{Fabrics: []string{"red=198.51.100.0/24"}}, []string{"no address on fabric red (198.51.100.0/24)"}},
		"fabric twice":      {func(*fakeServer) {}, Options{Fabrics: []string{"red=192.0.2.0/24", "red=192.0.2.1/24"}}, []string{"names red twice"}},
		"several addresses on a fabric": {func(f *fakeServer) {
			f.Addresses = func() ([]netip.Prefix, error) {
				return []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("198.51.100.4/24"), netip.MustParsePrefix("198.51.100.5/24")}, nil
			}
		}, Options{Address: "192.0.2.1", Fabrics: []string{"red=198.51.100.0/24"}}, []string{"198.51.100.4, 198.51.100.5", "--fabric red=198.51.100.4/24"}},
		"port":          {func(f *fakeServer) { f.taken[3261] = true }, Options{}, []string{"192.0.2.1:3261 (forwarding of a-1) is in use by another process", "stop"}},
		"relative pool": {func(*fakeServer) {}, Options{Pools: []string{"srv"}}, []string{"--pool srv is not an absolute path"}},
		"hidden pool":   {func(*fakeServer) {}, Options{Pools: []string{"/home/pool"}}, []string{"the services cannot use /home/pool", "/srv/sluice"}},
		"pool twice":    {func(*fakeServer) {}, Options{Pools: []string{"/srv/a", "/srv/a/"}}, []string{"--pool names /srv/a twice"}},
		"pool with files": {func(f *fakeServer) { f.file("/srv/sluice/volume-1", "x") }, Options{Pools: []string{"/srv/sluice"}},
			[]string{"/srv/sluice has files already, such as volume-1", "empty directory"}},
		"pool that is a file": {func(f *fakeServer) { f.file("/srv/sluice", "x") }, Options{Pools: []string{"/srv/sluice"}}, []string{"/srv/sluice is not a directory"}},
		"file system": {func(f *fakeServer) {
			f.FileSystem = func(string) (FileSystem, error) {
				return FileSystem{Type: "of type 0x1021994", FreeBytes: 100 << 30}, nil
			}
		}, Options{Pools: []string{"/srv/sluice"}}, []string{"of type 0x1021994", "XFS or ext4", "mkfs.xfs"}},
		"free space": {func(f *fakeServer) {
			f.FileSystem = func(string) (FileSystem, error) { return FileSystem{Type: "ext4", FreeBytes: 300 << 20}, nil }
		}, Options{Pools: []string{"/srv/sluice"}}, []string{"300Mi of free space", "1Gi at least"}},
		"directory that the account cannot enter": {func(f *fakeServer) {
			f.Account = func() (int, int, error) { return 64999, 64999, nil }
			f.file("/data/x", "")
			_ = os.Chmod(f.path("/data"), 0o700)
		}, Options{Pools: []string{"/data/pool"}}, []string{"cannot enter /data (mode 0700)", "chmod o+x /data"}},
		"store of a cluster":        {func(f *fakeServer) { f.file(controlPlaneDir+"/secrets.key", "") }, Options{}, []string{controlPlaneDir + "/secrets.key", "stop its services"}},
		"certificates of a cluster": {func(f *fakeServer) { f.file(tlsDirectory+"/ca.crt", "") }, Options{}, []string{tlsDirectory + "/ca.crt"}},
		"gateway of a cluster":      {func(f *fakeServer) { f.file("/etc/sluice/gateway-gw-1.env", "") }, Options{}, []string{"/etc/sluice/gateway-gw-1.env"}},
		"flags of a cluster": {func(f *fakeServer) { f.file(controlPlaneEnv, `FLAGS="--listen 0.0.0.0:7460"`) }, Options{},
			[]string{controlPlaneEnv + " with the flags --listen 0.0.0.0:7460"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			one.spoil(f)
			_, out, count := f.preflight(one.options)
			if count != 1 || strings.Count(out, "problem ") != 1 || strings.Count(out, "remedy: ") != 1 {
				t.Errorf("%d problems:\n%s", count, out)
			}
			for _, want := range one.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in:\n%s", want, out)
				}
			}
		})
	}
}

func twoAddresses(f *fakeServer) {
	f.Addresses = func() ([]netip.Prefix, error) {
		return []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("198.51.100.1/24")}, nil
	}
}

func TestWarningsPreventNothing(t *testing.T) {
	f := newFakeServer(t)
	f.ClockSynchronized = func() (bool, error) { return false, nil }
	f.RaiseMemlock = func() error { return unix.EPERM }
	f.Resolve = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	_, out, count := f.preflight(Options{})
	if count != 0 || strings.Count(out, "warning ") != 3 {
		t.Errorf("%d problems:\n%s", count, out)
	}
	for _, want := range []string{"clock is not synchronized", "chrony", "locked memory: operation not permitted", "the name a has no address", "/etc/hosts"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	f := newFakeServer(t)
	f.UserID = func() int { return 1000 }
	f.version = nil
	f.file(ringSetting, "1")
	f.file(tlsDirectory+"/ca.crt", "")
	if _, out, count := f.preflight(Options{Name: "-", Pools: []string{"x"}}); count != 6 {
		t.Errorf("%d problems, want 6:\n%s", count, out)
	}
}

func TestTheAddressOnAFabricIsFoundByItsSubnet(t *testing.T) {
	f := newFakeServer(t)
	twoAddresses(f)
	p, out, count := f.preflight(Options{Address: "192.0.2.1", Fabrics: []string{"red=192.0.2.0/24", "blue=198.51.100.1/24"}})
	if count != 0 || p.Plan.Fabrics["red"] != "192.0.2.1/24" || p.Plan.Fabrics["blue"] != "198.51.100.1/24" {
		t.Fatalf("%v\n%s", p.Plan.Fabrics, out)
	}
	if subnets := p.Plan.fabricObjects()[0].GetSpec().GetSubnets(); len(subnets) != 1 || subnets[0] != "198.51.100.0/24" {
		t.Errorf("fabric blue has the subnets %v", subnets)
	}
}
