package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/tests/netns"
)

// TestMain runs in a separate mount namespace, so that mounts disappear however the tests end.
func TestMain(m *testing.M) {
	if err := netns.Isolate(); err != nil {
		noMounts = err.Error()
	}
	os.Exit(m.Run())
}

var noMounts string

// mounted returns a disk, the directory below it and its own, until the test ends. The test is skipped where nothing can be mounted.
func mounted(t *testing.T) (d *Disk, backing, at string) {
	t.Helper()
	if noMounts != "" {
		t.Skip(noMounts)
	}
	directory := t.TempDir()
	backing, at = filepath.Join(directory, "backing"), filepath.Join(directory, "at")
	d, err := Mount(backing, at)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, backing, at
}

func TestEverySoManythWriteWaitsWhileTheDiskIsSlowAndAllArrive(t *testing.T) {
	d, backing, at := mounted(t)
	file, err := os.Create(filepath.Join(at, "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the written data was checked
	write := func(count int) {
		t.Helper()
		for i := range count {
			if _, err := file.WriteAt(bytes.Repeat([]byte{byte(i + 1)}, 512), int64(i)*512); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(10)
	if n := d.Waited(); n != 0 {
		t.Errorf("%d waited before the disk was slow", n)
	}
	d.Slow(3, time.Millisecond)
	write(9)
	if n := d.Waited(); n != 3 {
		t.Errorf("%d of 9 waited", n)
	}
	d.Slow(0, 0)
	write(9)
	if n := d.Waited(); n != 3 {
		t.Errorf("%d waited after the disk was slow", n-3)
	}
	kept, err := os.ReadFile(filepath.Join(backing, "image"))
	if err != nil || len(kept) != 10*512 || kept[8*512] != 9 {
		t.Errorf("below the disk are %d bytes: %v", len(kept), err)
	}
}

// A block is read as it was written although others write to the same page of the file and open it, because hosts write blocks
// smaller than a page.
func TestABlockIsReadAsItWasWrittenWhileOthersUseItsPage(t *testing.T) {
	_, _, at := mounted(t)
	image := filepath.Join(at, "volume-1")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		file, err := os.OpenFile(image, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
		}
		return file
	}
	var others sync.WaitGroup
	var over atomic.Bool
	others.Go(func() {
		for !over.Load() {
			if err := open().Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for block := range int64(3) {
		others.Go(func() {
			file, data := open(), make([]byte, 512)
			for i := 0; !over.Load(); i++ {
				data[0] = byte(i)
				_, err := file.WriteAt(data, (2+block)*512)
				_, err2 := file.ReadAt(make([]byte, 512), (2+block)*512)
				if err := errors.Join(err, err2); err != nil {
					t.Error(err)
				}
			}
			_ = file.Close() // the written data does not matter
		})
	}
	file := open()
	for i := range 20000 {
		data, got := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 256), make([]byte, 512)
		_, err := file.WriteAt(data, 512)
		_, err2 := file.ReadAt(got, 512)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("round %d: read % x after % x was written", i, got[:2], data[:2])
			break
		}
	}
	over.Store(true)
	others.Wait()
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestCallsWaitWhileTheDiskHangsAndAreExecutedAfterwards(t *testing.T) {
	d, backing, at := mounted(t)
	file, err := os.Create(filepath.Join(at, "image"))
	if err != nil {
		t.Fatal(err)
	}
	d.Hang()
	written := make(chan error, 1)
	go func() {
		_, err := file.WriteAt([]byte("data"), 0)
		written <- errors.Join(err, file.Sync(), file.Close())
	}()
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
	if kept, err := os.ReadFile(filepath.Join(backing, "image")); err != nil || len(kept) != 0 {
		t.Errorf("the disk hangs, and below it are %q: %v", kept, err)
	}
	d.Resume()
	if err := <-written; err != nil {
		t.Error(err)
	}
	if kept, err := os.ReadFile(filepath.Join(backing, "image")); err != nil || string(kept) != "data" {
		t.Errorf("below the disk is %q: %v", kept, err)
	}
}

// image returns a new file on the disk, open until the test ends, with one block in it.
func image(t *testing.T, at string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(at, "image"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // the written data was checked
	if _, err := file.WriteAt([]byte("old"), 0); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAFailingDiskRefusesReadsWritesAndSyncsAndChangesNothing(t *testing.T) {
	d, backing, at := mounted(t)
	file := image(t, at)
	d.Fail(syscall.EIO)
	if _, err := file.WriteAt([]byte("new"), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("write: %v", err)
	}
	if _, err := file.ReadAt(make([]byte, 3), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("read after the failed write: %v", err)
	}
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync: %v", err)
	}
	if n := d.Refused(); n < 3 {
		t.Errorf("%d calls were refused", n)
	}
	d.Fail(0)
	got := make([]byte, 3)
	if _, err := file.ReadAt(got, 0); err != nil || string(got) != "old" {
		t.Errorf("read afterwards: %q, %v", got, err)
	}
	if kept, err := os.ReadFile(filepath.Join(backing, "image")); err != nil || string(kept) != "old" {
		t.Errorf("below the disk is %q: %v", kept, err)
	}
}

func TestAFullDiskRefusesWritesAndAllocationsAndReportsNoFreeSpace(t *testing.T) {
	d, _, at := mounted(t)
	file := image(t, at)
	d.Fill(true)
	if _, err := file.WriteAt([]byte("new"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, 8192); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("allocation: %v", err)
	}
	free := func() uint64 {
		t.Helper()
		var found syscall.Statfs_t
		if err := syscall.Statfs(at, &found); err != nil {
			t.Fatal(err)
		}
		return found.Bavail
	}
	if n := free(); n != 0 {
		t.Errorf("%d blocks are free", n)
	}
	got := make([]byte, 3)
	if _, err := file.ReadAt(got, 0); err != nil || string(got) != "old" {
		t.Errorf("read of a full disk: %q, %v", got, err)
	}
	if err := file.Sync(); err != nil {
		t.Errorf("sync of a full disk: %v", err)
	}
	d.Fill(false)
	if _, err := file.WriteAt([]byte("new"), 0); err != nil || free() == 0 {
		t.Errorf("write afterwards: %v, %d blocks are free", err, free())
	}
}
