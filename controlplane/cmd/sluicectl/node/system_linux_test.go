package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThePortOfAProcessIsInUseByIt(t *testing.T) {
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := opened.Addr().(*net.TCPAddr).AddrPort()
	server := ThisServer()
	if err := server.Listen(at); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("the port %v: %v", at, err)
	}
	by := server.listenerAt(at.Port())
	if by.process != fmt.Sprint(os.Getpid()) || by.name == "" {
		t.Errorf("the port is in use by %+v", by)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(at); err != nil {
		t.Errorf("the port is free, but: %v", err)
	}
}

func TestTheUnitOfAListenerIsThatOfItsControlGroup(t *testing.T) {
	f := newFakeServer(t)
	f.file("/proc/net/tcp", "  sl  local_address rem_address   st\n   0: 010200C0:0CBC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n")
	f.file("/proc/12/comm", "sluice-gateway\n")
	f.file("/proc/12/cgroup", "0::/system.slice/system-sluice\\x2dgateway.slice/sluice-gateway@a-1.service\n")
	f.file("/proc/12/fd/present", "")
	if err := os.Symlink("socket:[4711]", f.path("/proc/12/fd/3")); err != nil {
		t.Fatal(err)
	}
	if by := f.listenerAt(3260); by.unit != "sluice-gateway@a-1.service" || by.process != "12" {
		t.Errorf("the port is in use by %+v", by)
	}
	if by := f.listenerAt(3261); by != (listener{}) {
		t.Errorf("a free port is in use by %+v", by)
	}
}

func TestThisServerDescribesItself(t *testing.T) {
	server := ThisServer()
	if of, err := server.FileSystem(t.TempDir()); err != nil || of.Type == "" || of.FreeBytes == 0 {
		t.Errorf("file system %+v, %v", of, err)
	}
	if release, err := server.Kernel(); err != nil || !strings.Contains(release, ".") {
		t.Errorf("kernel %q, %v", release, err)
	}
	addresses, err := server.Addresses()
	found := false
	for _, one := range addresses {
		found = found || one == netip.MustParsePrefix("127.0.0.1/8")
	}
	if err != nil || !found {
		t.Errorf("addresses %v, %v", addresses, err)
	}
	if _, err := server.ClockSynchronized(); err != nil {
		t.Error(err)
	}
	if out, err := server.Run(t.Context(), "sh", "-c", "echo out; echo wrong >&2; exit 3"); out != "out\n" || err == nil || !strings.Contains(err.Error(), "wrong") {
		t.Errorf("%q, %v", out, err)
	}
}
