package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk is a file system whose reads and writes can be slow: a directory of another one, shown again through FUSE. A gateway's
// processes see nothing but a disk that takes its time; who is killed meanwhile ends when the disk has answered, as with a
// real one.
type disk struct {
	server *fuse.Server
	// every so-manyth read or write takes so long; 0: none.
	every, delay atomic.Int64
	// count of reads and writes while it was slow, and of those that waited.
	count, waited atomic.Int64
}

// mountDisk shows `backing` at `at`, both of which it makes. It needs /dev/fuse.
func mountDisk(backing, at string) (*disk, error) {
	for _, directory := range []string{backing, at} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return nil, err
		}
	}
	d := &disk{}
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return nil, err
	}
	server, err := fs.Mount(at, &diskNode{root.(*fs.LoopbackNode), d}, &fs.Options{MountOptions: fuse.MountOptions{FsName: filepath.Base(at), Name: "slow",
		DirectMount: true, DirectMountStrict: true, MaxWrite: diskMaxWrite, ExplicitDataCacheControl: true}})
	d.server = server
	return d, err
}

const diskMaxWrite = 1 << 20 // bytes; what is larger comes in pieces

func (d *disk) close() error {
	if d == nil {
		return nil
	}
	d.slow(0, 0)
	return d.server.Unmount()
}

func (d *disk) slow(every int64, delay time.Duration) {
	d.delay.Store(int64(delay))
	d.every.Store(every)
}

// pass waits if it is this one's turn.
func (d *disk) pass() {
	if every := d.every.Load(); every > 0 && d.count.Add(1)%every == 0 {
		d.waited.Add(1)
		time.Sleep(time.Duration(d.delay.Load())) // a disk doesn't hurry because somebody has lost patience
	}
}

// slowness is a fault: now and then the disk takes longer than hosts wait with a retry after a reset, so that an original is
// still at work when its retry comes (R5), and its owner may be given up meanwhile (R2).
func (d *disk) slowness(name string) []*fault {
	if d == nil {
		return nil
	}
	return []*fault{{name: "slow disk under " + name, on: "disk under " + name, kind: "slow disk", weight: 4, shortest: 500 * time.Millisecond,
		longest: 8 * time.Second,
		do: func(context.Context) error {
			d.slow(slowEvery, slowDelay)
			return nil
		},
		undo: func(context.Context) error {
			d.slow(0, 0)
			return nil
		}}}
}

const (
	slowEvery = 40
	slowDelay = 1300 * time.Millisecond
)

// diskNode is a file or directory there.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

// WrapChild implements fs.NodeWrapChilder.
func (n *diskNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{ops.(*fs.LoopbackNode), n.disk}
}

// diskFile is an open one.
type diskFile struct {
	*fs.LoopbackFile
	disk *disk
}

func (n *diskNode) opened(f fs.FileHandle) fs.FileHandle {
	if file, ok := f.(*fs.LoopbackFile); ok {
		return &diskFile{file, n.disk}
	}
	return f
}

// Open implements fs.NodeOpener. The page cache of an image stays, also when its time of modification changes
// (ExplicitDataCacheControl): Linux drops a page that a write has unlocked already and not yet sent, reads it anew, and so gives the
// old content of a block after its write was acknowledged. Nobody changes an image past this file system.
func (n *diskNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, kept, errno := n.LoopbackNode.Open(ctx, flags)
	if strings.HasPrefix(filepath.Base(n.Path(nil)), "volume-") {
		kept |= fuse.FOPEN_KEEP_CACHE
	}
	return n.opened(f), kept, errno
}

// Create implements fs.NodeCreater.
func (n *diskNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, kept, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.opened(f), kept, errno
}

// PassthroughFd implements fs.FilePassthroughFder: the kernel goes to no file past this one.
func (f *diskFile) PassthroughFd() (int, bool) { return -1, false }

// Write implements fs.FileWriter.
func (f *diskFile) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	f.disk.pass()
	return f.LoopbackFile.Write(ctx, data, offset)
}

// Read implements fs.FileReader.
func (f *diskFile) Read(ctx context.Context, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	f.disk.pass()
	return f.LoopbackFile.Read(ctx, into, offset)
}
