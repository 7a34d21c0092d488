package isolation

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	extentBlock = 4096
	imageSize   = 64 << 20
)

// fragmented makes an image with a hole after each block, so that ext4 needs some blocks for the list of its extents. The file system
// was mounted again afterwards, so the kernel has none of them in memory.
func fragmented(t *testing.T, at string) string {
	t.Helper()
	disk, err := netns.Small("ext4", at)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := disk.Unmount(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(disk.Directory, "image")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte{7}, extentBlock)
	for offset := int64(0); offset < imageSize/2; offset += 2 * extentBlock {
		_, failure := file.WriteAt(block, offset)
		err = errors.Join(err, failure)
	}
	if err := errors.Join(err, file.Truncate(imageSize), file.Sync(), file.Close(), disk.Unmount(), disk.Mount()); err != nil {
		t.Fatal(err)
	}
	return path
}

// Direct I/O is submitted on a reactor, and ext4 looks for the extents in that call, although it must not wait (RWF_NOWAIT). So the
// gateway has the kernel load them when it opens the file.
func TestAReactorDoesNotWaitForTheExtentsOfAFileOnADiskThatHangs(t *testing.T) {
	d, process := hangingDiskWith(t, ", io: direct, write-cache: on", func(at string) string { return fragmented(t, at) })
	hanging, other := logIn(t, "hanging"), logIn(t, "other")
	d.Hang()
	commands := map[string][]initiator.Command{}
	for i := range 16 { // far apart, so each needs another part of the list
		commands["READ"] = append(commands["READ"],
			initiator.Read(hungLUN, uint64(i)*imageSize/2/16/blockSize, extentBlock/blockSize, blockSize))
	}
	answers, count := begin(t, hanging, commands)
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
	useHealthyLUNs(t, hanging)
	useHealthyLUNs(t, other)
	d.Resume()
	for range count {
		a := <-answers
		if a.err != nil || a.Status != initiator.StatusGood || !bytes.Equal(a.Data, bytes.Repeat([]byte{7}, extentBlock)) {
			t.Errorf("READ after the disk hung: %v, status %v, %d bytes", a.err, a.Status, len(a.Data))
		}
	}
	if unexpected := process.Unexpected(); len(unexpected) != 0 {
		t.Error(unexpected)
	}
}
