// Package disk is a disk whose faults a test controls: a directory of another file system, shown again through FUSE. Its
// users see a disk that is slow, hangs, reports errors or has no space. As with a real disk, a killed process ends only when its
// calls end.
package disk

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Disk is a mounted file system.
type Disk struct {
	server *fuse.Server
	// every and delay: each every-th read or write takes this time; 0: none.
	every, delay atomic.Int64
	// count is the number of reads and writes while the disk was slow, waited the number of those that were delayed.
	count, waited atomic.Int64
	// failure is the errno of all calls that use data; 0: none. full: no call gets space. refused is the number of calls that ended
	// with one of them.
	failure atomic.Int32
	full    atomic.Bool
	refused atomic.Int64

	mu sync.Mutex
	// hung is closed when the disk answers again; nil: it does not hang.
	hung chan struct{}
	// waiting is the number of calls that wait for that.
	waiting atomic.Int64
}

// Mount shows `backing` at `at`, and creates both. It needs /dev/fuse, and a mount namespace in which this process may mount.
func Mount(backing, at string) (*Disk, error) {
	for _, directory := range []string{backing, at} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return nil, err
		}
	}
	d := &Disk{}
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return nil, err
	}
	server, err := fs.Mount(at, &node{root.(*fs.LoopbackNode), d}, &fs.Options{MountOptions: fuse.MountOptions{FsName: filepath.Base(at), Name: "slow",
		DirectMount: true, DirectMountStrict: true, MaxWrite: maxWrite, ExplicitDataCacheControl: true}})
	d.server = server
	return d, err
}

const maxWrite = 1 << 20 // bytes; larger writes are split

// Close ends all faults and unmounts the disk, which no process may use any more. It does nothing with a nil Disk.
func (d *Disk) Close() error {
	if d == nil {
		return nil
	}
	d.Slow(0, 0)
	d.Fail(0)
	d.Fill(false)
	d.Resume()
	return d.server.Unmount()
}

// Slow delays each every-th read or write by `delay`, until the next call. 0 and 0: none.
func (d *Disk) Slow(every int64, delay time.Duration) {
	d.delay.Store(int64(delay))
	d.every.Store(every)
}

// Waited returns the number of calls that Slow has delayed.
func (d *Disk) Waited() int64 { return d.waited.Load() }

// Fail lets all reads, writes, syncs and allocations end with this error, before they have an effect, until the next call. 0: none.
func (d *Disk) Fail(failure syscall.Errno) { d.failure.Store(int32(failure)) }

// Fill lets all writes and allocations end with ENOSPC, before they have an effect, until Fill(false). Meanwhile no space is free.
// As on a thin device, this includes writes to blocks that have data.
func (d *Disk) Fill(full bool) { d.full.Store(full) }

// Refused returns the number of calls that ended with an error by Fail or Fill.
func (d *Disk) Refused() int64 { return d.refused.Load() }

// refuse returns the error with which a call must end; 0: none.
func (d *Disk) refuse(needsSpace bool) syscall.Errno {
	errno := syscall.Errno(d.failure.Load())
	if errno == 0 && needsSpace && d.full.Load() {
		errno = syscall.ENOSPC
	}
	if errno != 0 {
		d.refused.Add(1)
	}
	return errno
}

// Hang lets all reads, writes, syncs, allocations, seeks and queries of the free space wait until Resume.
func (d *Disk) Hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil {
		d.hung = make(chan struct{})
	}
}

// Resume ends Hang. The calls that waited are executed.
func (d *Disk) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung != nil {
		close(d.hung)
		d.hung = nil
	}
}

// Waiting returns the number of calls that wait for Resume.
func (d *Disk) Waiting() int64 { return d.waiting.Load() }

func (d *Disk) hang() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hung
}

// pass waits while the disk hangs, and if this call is an every-th one.
func (d *Disk) pass() {
	if hung := d.hang(); hung != nil {
		d.waiting.Add(1)
		<-hung
		d.waiting.Add(-1)
	}
	if every := d.every.Load(); every > 0 && d.count.Add(1)%every == 0 {
		d.waited.Add(1)
		time.Sleep(time.Duration(d.delay.Load())) // a disk does not become faster because a user stops waiting
	}
}

// node is a file or directory in it.
type node struct {
	*fs.LoopbackNode
	disk *Disk
}

// WrapChild implements fs.NodeWrapChilder.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{ops.(*fs.LoopbackNode), n.disk}
}

// openFile is an open file.
type openFile struct {
	*fs.LoopbackFile
	disk *Disk
}

func (n *node) opened(f fs.FileHandle) fs.FileHandle {
	if file, ok := f.(*fs.LoopbackFile); ok {
		return &openFile{file, n.disk}
	}
	return f
}

// Open implements fs.NodeOpener. The page cache of an image stays even if its modification time changes
// (ExplicitDataCacheControl). Linux would drop a page that a write has unlocked and not yet sent, and read it again, which yields
// the old content of a block after its write was acknowledged. No process changes an image except through this file system.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, kept, errno := n.LoopbackNode.Open(ctx, flags)
	if name := filepath.Base(n.Path(nil)); strings.HasPrefix(name, "volume-") || strings.HasSuffix(name, ".img") {
		kept |= fuse.FOPEN_KEEP_CACHE
	}
	return n.opened(f), kept, errno
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, kept, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.opened(f), kept, errno
}

// PassthroughFd implements fs.FilePassthroughFder: the kernel must not bypass this file system.
func (f *openFile) PassthroughFd() (int, bool) { return -1, false }

// Write implements fs.FileWriter.
func (f *openFile) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	f.disk.pass()
	if errno := f.disk.refuse(true); errno != 0 {
		return 0, errno
	}
	return f.LoopbackFile.Write(ctx, data, offset)
}

// Read implements fs.FileReader.
func (f *openFile) Read(ctx context.Context, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	f.disk.pass()
	if errno := f.disk.refuse(false); errno != 0 {
		return nil, errno
	}
	return f.LoopbackFile.Read(ctx, into, offset)
}

// Fsync implements fs.FileFsyncer.
func (f *openFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	f.disk.pass()
	if errno := f.disk.refuse(false); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

// Allocate implements fs.FileAllocater: fallocate(2), also of holes.
func (f *openFile) Allocate(ctx context.Context, offset, size uint64, mode uint32) syscall.Errno {
	f.disk.pass()
	if errno := f.disk.refuse(mode&unix.FALLOC_FL_PUNCH_HOLE == 0); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Allocate(ctx, offset, size, mode)
}

// Lseek implements fs.FileLseeker.
func (f *openFile) Lseek(ctx context.Context, offset uint64, whence uint32) (uint64, syscall.Errno) {
	f.disk.pass()
	return f.LoopbackFile.Lseek(ctx, offset, whence)
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	n.disk.pass()
	errno := n.LoopbackNode.Statfs(ctx, out)
	if n.disk.full.Load() {
		out.Bfree, out.Bavail = 0, 0
	}
	return errno
}
