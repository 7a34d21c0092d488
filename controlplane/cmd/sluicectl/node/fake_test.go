package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// fakeServer is a server whose files are in a temporary directory, and whose systemd is a table of units.
type fakeServer struct {
	*System
	t       *testing.T
	version map[string]string
	units   map[string]bool // active and enabled
	memlock string
	taken   map[uint16]bool
	// calls are the programs that were run and that change something.
	calls []string
	// failAt makes the call of that number fail, as an interruption does; 0: none.
	failAt int
}

var errInterrupted = errors.New("interrupted")

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, version: map[string]string{}, units: map[string]bool{sampleUnit: true}, memlock: "infinity", taken: map[uint16]bool{}}
	for _, name := range packages {
		f.version[name] = "1.2.3"
	}
	f.System = &System{
		Root: t.TempDir(), Run: f.run, UserID: func() int { return 0 }, HostName: func() (string, error) { return "a.example.com", nil },
		Resolve: func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil },
		Addresses: func() ([]netip.Prefix, error) {
			return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("192.0.2.1/24")}, nil
		},
		Listen: f.listen, Kernel: func() (string, error) { return "6.1.0-28-amd64", nil }, SetUpRing: func() error { return nil },
		RaiseMemlock: func() error { return nil }, ClockSynchronized: func() (bool, error) { return true, nil },
		FileSystem: func(string) (FileSystem, error) {
			return FileSystem{Type: "xfs", Reflink: true, FreeBytes: 100 << 30}, nil
		},
		Account: func() (int, int, error) { return os.Getuid(), os.Getgid(), nil },
	}
	f.file("/run/systemd/system/present", "")
	f.file(controlPlaneEnv, "# Flags\nFLAGS=\"\"\n")
	if err := os.Chmod(f.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// file writes a file of the server.
func (f *fakeServer) file(path, content string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(path)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(path), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeServer) text(path string) string {
	f.t.Helper()
	text, err := f.read(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func (f *fakeServer) listen(at netip.AddrPort) error {
	if f.taken[at.Port()] {
		return errInUse
	}
	return nil
}

// change counts a call that changes something.
func (f *fakeServer) change(call string) error {
	f.calls = append(f.calls, call)
	if len(f.calls) == f.failAt {
		return errInterrupted
	}
	return nil
}

func (f *fakeServer) run(_ context.Context, program string, arguments ...string) (string, error) {
	call := strings.Join(append([]string{program}, arguments...), " ")
	last := arguments[len(arguments)-1]
	switch {
	case program == "dpkg-query":
		out := ""
		for _, name := range packages {
			if f.version[name] != "" {
				out += name + " " + f.version[name] + " installed\n"
			}
		}
		return out, nil
	case strings.Contains(call, "LimitMEMLOCK"):
		return f.memlock + "\n", nil
	case strings.Contains(call, "ActiveState"):
		if f.units[last] {
			return "active\n", nil
		}
		return "inactive\n", nil
	case strings.Contains(call, "MainPID"):
		return "4711\n", nil
	case strings.HasPrefix(call, "systemctl restart"):
		return "", f.change(call)
	case strings.HasPrefix(call, "systemctl is-enabled"):
		if f.units[last] {
			return "enabled\n", nil
		}
		return "disabled\n", errors.New("exit status 1")
	case strings.HasPrefix(call, "systemctl enable"), strings.HasPrefix(call, "systemctl disable"):
		if err := f.change(call); err != nil {
			return "", err
		}
		f.units[last] = arguments[0] == "enable"
		f.started()
		return "", nil
	case program == "sluice-controlplane":
		return "", f.certificates(call, arguments)
	}
	return "", fmt.Errorf("the test does not expect %s", call)
}

// started gives the process of all gateways the flags in their files.
func (f *fakeServer) started() {
	all := ""
	for _, name := range []string{"a-1", "a-2", "b-1", "b-2"} {
		all += " " + flagsIn(f.text("/etc/sluice/gateway-"+name+".env"))
	}
	f.file("/proc/4711/cmdline", strings.ReplaceAll(all, " ", "\x00"))
}

// certificates writes files in the place of certificates. An interruption leaves a part of them.
func (f *fakeServer) certificates(call string, arguments []string) error {
	failed := f.change(call)
	directory := arguments[slices.Index(arguments, "--directory")+1]
	names := []string{"ca.key", "ca.crt", "server.crt", "server.key", "admin.crt", "admin.key"}
	for i, word := range arguments {
		if word == "--gateway" {
			names = append(names, "gateway-"+arguments[i+1]+".crt", "gateway-"+arguments[i+1]+".key")
		}
	}
	if failed != nil {
		names = names[:3]
	}
	for _, name := range names {
		f.file(filepath.Join(strings.TrimPrefix(directory, f.Root), name), fmt.Sprintf("%s of run %d", name, len(f.calls)))
	}
	return failed
}

// fakeCluster stores objects. A gateway is usable once its unit runs.
type fakeCluster struct {
	server    *fakeServer
	objects   map[string]proto.Message
	waited    bool
	fabrics   []*pb.Fabric
	members   []string
	authority string
	// elsewhere: the control plane runs on another server.
	elsewhere bool
}

func (c *fakeCluster) Ensure(_ context.Context, object proto.Message) (bool, error) {
	name := fmt.Sprintf("%s/%s", object.ProtoReflect().Descriptor().Name(), object.(interface{ GetMeta() *pb.ObjectMeta }).GetMeta().GetName())
	if c.objects[name] != nil {
		return false, nil
	}
	if !c.server.units[controlPlaneUnit] && !c.elsewhere {
		return false, errors.New("the control plane does not run")
	}
	if err := c.server.change("create " + name); err != nil {
		return false, err
	}
	c.objects[name] = object
	return true, nil
}

func (c *fakeCluster) Fabrics(context.Context, string) ([]*pb.Fabric, error) { return c.fabrics, nil }

func (c *fakeCluster) ImportAuthority(_ context.Context, certificate, key string) error {
	if !c.server.units[controlPlaneUnit] {
		return errors.New("the control plane does not run")
	}
	c.authority = certificate + " " + key
	return nil
}

func (c *fakeCluster) Members(context.Context) ([]*pb.Member, error) {
	var all []*pb.Member
	for name, host := range map[string]string{"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.3"} {
		if slices.Contains(c.members, name) {
			all = append(all, &pb.Member{Node: name, PeerAddress: host + ":7467", ApiAddress: host + ":7460"})
		}
	}
	return all, nil
}

func (c *fakeCluster) WaitUsable(_ context.Context, objects ...proto.Message) error {
	for _, object := range objects {
		if gateway, is := object.(*pb.Gateway); is && !c.server.units["sluice-gateway@"+gateway.GetMeta().GetName()+".service"] {
			return fmt.Errorf("%s does not run", gateway.GetMeta().GetName())
		}
	}
	c.waited = true
	return nil
}
