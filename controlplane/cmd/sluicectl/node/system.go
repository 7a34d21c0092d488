package node

import (
	"context"
	"net/netip"
	"path/filepath"
)

// System is the server. The functions are those of the kernel and of installed programs; tests replace them.
type System struct {
	// Root is put before each path of a file; empty for the server itself.
	Root string
	// Run executes a program and returns its standard output. The error has its standard error.
	Run func(ctx context.Context, program string, arguments ...string) (string, error)
	// UserID is the effective user id of this process.
	UserID func() int
	// HostName is the host name of the server.
	HostName func() (string, error)
	// Resolve returns the addresses of a name.
	Resolve func(ctx context.Context, name string) ([]string, error)
	// Addresses are the addresses of the network interfaces, each with its subnet.
	Addresses func() ([]netip.Prefix, error)
	// Listen opens a TCP port and closes it again.
	Listen func(netip.AddrPort) error
	// Kernel is the release of the kernel.
	Kernel func() (string, error)
	// SetUpRing makes an io_uring and closes it again.
	SetUpRing func() error
	// RaiseMemlock removes the limit of locked memory of this process.
	RaiseMemlock func() error
	// ClockSynchronized reports whether the kernel's clock is synchronized (adjtimex(2), STA_UNSYNC).
	ClockSynchronized func() (bool, error)
	// FileSystem describes the file system of an existing directory.
	FileSystem func(directory string) (FileSystem, error)
	// Account returns user and group of the services.
	Account func() (user, group int, err error)
}

// FileSystem is what the preflight needs to know of one.
type FileSystem struct {
	// Type is xfs, ext4, or the magic number of another one.
	Type string
	// Reflink: files can share blocks, so snapshots and clones are possible.
	Reflink bool
	// FreeBytes are available to all users.
	FreeBytes uint64
}

// path returns where a file of the server is.
func (s *System) path(of string) string { return filepath.Join("/", s.Root, of) }
