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
// processes only see a slow disk. A process that is killed meanwhile ends when the disk has answered, as with a real one.
type disk struct {
	server *fuse.Server
	// every and delay: each every-th read or write takes this time; 0: none.
	every, delay atomic.Int64
	// count has the reads and writes while it was slow, and waited those that were delayed.
	count, waited atomic.Int64
}

// mountDisk shows `backing` at `at`, and creates both. It needs /dev/fuse.
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

const diskMaxWrite = 1 << 20 // bytes; larger writes are split

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

// pass waits if this call is an every-th one.
func (d *disk) pass() {
	if every := d.every.Load(); every > 0 && d.count.Add(1)%every == 0 {
		d.waited.Add(1)
		time.Sleep(time.Duration(d.delay.Load())) // a disk does not become faster because a user stops waiting
	}
}

// slowness is a fault: sometimes the disk takes longer than hosts wait before a retry after a reset. So an original is still in
// progress when its retry arrives (R5), and its owner may be declared dead meanwhile (R2).
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

// diskNode is a file or directory in it.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

// WrapChild implements fs.NodeWrapChilder.
func (n *diskNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{ops.(*fs.LoopbackNode), n.disk}
}

// diskFile is an open file.
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

// Open implements fs.NodeOpener. The page cache of an image stays even if its modification time changes
// (ExplicitDataCacheControl). Linux would drop a page that a write has unlocked and not yet sent, and read it again, which yields
// the old content of a block after its write was acknowledged. No process changes an image except through this file system.
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

// PassthroughFd implements fs.FilePassthroughFder: the kernel must not bypass this file system.
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
