package csi_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/initiator"
)

const diskBlock = 4096

// disk is a shared raw block volume as one node uses it: a session by each portal.
type disk struct {
	*testing.T
	lun   uint16
	paths []*initiator.Session
}

// attached logs a node in to a volume that is published to it.
func attached(t *testing.T, node string, found map[string]string) *disk {
	t.Helper()
	lun, err := strconv.ParseUint(found["lun"], 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{T: t, lun: uint16(lun)}
	credentials := &initiator.CHAP{User: initiatorOf(node), Secret: secretOf(t, node, found)}
	for portal := range strings.SplitSeq(found["portals"], ",") {
		session, err := initiator.Login(t.Context(), initiator.Options{Portal: portal, Target: found["iqn"], Initiator: initiatorOf(node),
			ISID: [6]byte{0x80, 0, 0, 0, 0, byte(len(d.paths))}, CHAP: credentials})
		if err != nil {
			t.Fatalf("%s by %s: %v", node, portal, err)
		}
		t.Cleanup(session.Close)
		d.paths = append(d.paths, session)
	}
	return d
}

// write writes a block by each path.
func (d *disk) write(mark byte) {
	d.Helper()
	for i, path := range d.paths {
		data := bytes.Repeat([]byte{mark + byte(i)}, diskBlock)
		if _, err := path.Good(d.Context(), initiator.Write(d.lun, uint64(i), data, diskBlock)); err != nil {
			d.Fatal(err)
		}
	}
}

// reads checks what the other node wrote, each block by another path than it was written.
func (d *disk) reads(mark byte) {
	d.Helper()
	for i := range d.paths {
		path := d.paths[(i+1)%len(d.paths)]
		data, err := path.Good(d.Context(), initiator.Read(d.lun, uint64(i), 1, diskBlock))
		if err != nil {
			d.Fatal(err)
		}
		if !bytes.Equal(data, bytes.Repeat([]byte{mark + byte(i)}, diskBlock)) {
			d.Errorf("block %d begins with %v, and %v was written", i, data[:4], mark+byte(i))
		}
	}
}

// As KubeVirt migrates a machine: it runs on the first node while the second one attaches its disk, is handed over, and the first
// node detaches it.
func TestARawBlockVolumeMovesBetweenNodesThatBothHaveItWhileItIsInUse(t *testing.T) {
	id := create(t, "migrated", shared, map[string]string{"blockSize": strconv.Itoa(diskBlock)})
	source := attached(t, "node-1", published(t, id, here, shared))
	source.write('a')
	destination := attached(t, "node-2", published(t, id, there, shared))
	source.write('k') // the machine still runs on the source
	destination.reads('k')
	destination.write('u')
	source.reads('u') // of a migration that is cancelled
	unpublish(t, id, here)
	if _, err := source.paths[0].Good(t.Context(), initiator.Read(source.lun, 0, 1, diskBlock)); err == nil {
		t.Error("the source still reads the disk")
	}
	destination.reads('u')
	destination.write('0')
	destination.reads('0')
}
