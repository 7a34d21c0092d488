package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// account is the user and the group of all services.
const account = "sluice"

// ThisServer returns the server that the process runs on.
func ThisServer() *System {
	return &System{
		Run: run, UserID: os.Geteuid, HostName: os.Hostname, Resolve: net.DefaultResolver.LookupHost, Addresses: interfaceAddresses,
		Listen: listen, Kernel: kernelRelease, SetUpRing: setUpRing, RaiseMemlock: raiseMemlock, ClockSynchronized: clockSynchronized,
		FileSystem: fileSystemOf, Account: serviceAccount,
	}
}

func run(ctx context.Context, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(append([]string{program}, arguments...), " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

func interfaceAddresses() ([]netip.Prefix, error) {
	listed, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for _, one := range listed {
		prefix, err := netip.ParsePrefix(one.String())
		// A link-local address needs a zone, which no portal has.
		if err == nil && !prefix.Addr().IsLinkLocalUnicast() {
			all = append(all, netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()))
		}
	}
	return all, nil
}

func listen(at netip.AddrPort) error {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	return listener.Close()
}

func kernelRelease() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

// ringParameters has the size of struct io_uring_params (io_uring_setup(2)).
type ringParameters [120]byte

func setUpRing() error {
	var parameters ringParameters
	ring, _, failed := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
	if failed != 0 {
		return failed
	}
	return unix.Close(int(ring))
}

func raiseMemlock() error {
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
}

func clockSynchronized() (bool, error) {
	var state unix.Timex
	if _, err := unix.Adjtimex(&state); err != nil {
		return false, err
	}
	return state.Status&unix.STA_UNSYNC == 0, nil
}

func fileSystemOf(directory string) (FileSystem, error) {
	var state unix.Statfs_t
	if err := unix.Statfs(directory, &state); err != nil {
		return FileSystem{}, err
	}
	of := FileSystem{FreeBytes: state.Bavail * uint64(state.Bsize)}
	switch state.Type {
	case unix.XFS_SUPER_MAGIC:
		of.Type = "xfs"
	case unix.EXT4_SUPER_MAGIC:
		of.Type = "ext4"
	default:
		of.Type = fmt.Sprintf("of type 0x%x", state.Type)
	}
	of.Reflink = reflinks(directory)
	return of, nil
}

// reflinks tries to share a block between two files that never get a name.
func reflinks(directory string) bool {
	var files [2]int
	for i := range files {
		file, err := unix.Open(directory, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return false
		}
		defer func() { _ = unix.Close(file) }()
		files[i] = file
	}
	if _, err := unix.Write(files[0], make([]byte, 4096)); err != nil {
		return false
	}
	return unix.IoctlFileClone(files[1], files[0]) == nil
}

func serviceAccount() (uid, gid int, err error) {
	found, err := user.Lookup(account)
	if err != nil {
		return 0, 0, fmt.Errorf("the packages make the account %s, but it is missing: %w", account, err)
	}
	if uid, err = strconv.Atoi(found.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(found.Gid)
	return uid, gid, err
}
