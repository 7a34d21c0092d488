package isolation

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// hang hangs the disk, and waits until it has one of the reads.
func hang(t *testing.T, d *disk.Disk, session *initiator.Session, reads int) (chan answer, int) {
	t.Helper()
	d.Hang()
	commands := map[string][]initiator.Command{}
	for i := range reads {
		commands["READ"] = append(commands["READ"], initiator.Read(hungLUN, uint64(i)*64, 8, blockSize))
	}
	answers, count := begin(t, session, commands)
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
	return answers, count
}

func untilLogged(t *testing.T, process *netns.Process, line string) {
	t.Helper()
	ctx := soon(t)
	for !strings.Contains(process.LogTail(100), line) {
		if ctx.Err() != nil {
			t.Fatalf("the log has no line %q", line)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A host resets a LUN whose commands do not end. The session keeps its other LUNs, and the blocks of the aborted write stay in use.
func TestAResetOfALUNThatHangsEndsAndItsWriteIsNotOvertaken(t *testing.T) {
	d, process := hangingDisk(t, "")
	session, other := logIn(t, "hanging"), logIn(t, "other")
	old, fresh := bytes.Repeat([]byte{1}, blockSize), bytes.Repeat([]byte{2}, blockSize)
	d.Hang()
	aborted, count := begin(t, session, map[string][]initiator.Command{"WRITE": {initiator.Write(hungLUN, 0, old, blockSize)}})
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
	if err := session.ResetUnit(soon(t), hungLUN); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*initiator.Session{session, other} {
		if _, err := s.Do(soon(t), initiator.TestUnitReady(hungLUN)); err != nil { // the unit attention of the reset
			t.Fatal(err)
		}
	}
	later, _ := begin(t, other, map[string][]initiator.Command{"WRITE": {initiator.Write(hungLUN, 0, fresh, blockSize)}})
	useHealthyLUNs(t, session)
	select {
	case a := <-later:
		t.Errorf("the later write of the block ended before the aborted one: %v, %v", a.Response, a.err)
	case a := <-aborted:
		t.Errorf("an aborted write of the same nexus was answered: %v, %v", a.Response, a.err)
	default:
	}
	d.Resume()
	if a := <-later; a.err != nil || a.Status != initiator.StatusGood {
		t.Errorf("the write after the hang: %v, %v", a.Response, a.err)
	}
	read, err := session.Good(soon(t), initiator.Read(hungLUN, 0, 1, blockSize))
	if err != nil || !bytes.Equal(read, fresh) {
		t.Errorf("%v, the aborted write came later: %v", err, bytes.Equal(read, old))
	}
	session.Close()
	for range count {
		<-aborted // without an answer; it ends with the session
	}
	if unexpected := process.Unexpected(); len(unexpected) != 0 {
		t.Error(unexpected)
	}
}

// Otherwise a host that changed its session would lose its healthy LUNs, too.
func TestALoginReplacesASessionWhoseDiskHangs(t *testing.T) {
	d, _ := hangingDisk(t, "")
	lost, count := hang(t, d, logIn(t, "host"), 40)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, err := initiator.Login(ctx, initiator.Options{Portal: portal, Target: iqn, Initiator: "iqn.2026-11.dev.sluice:host",
		LoginTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for range count {
		if a := <-lost; a.err == nil {
			t.Errorf("a command of the replaced session was answered: %v", a.Response)
		}
	}
	for _, lun := range []uint16{hungLUN, fileLUN, memoryLUN} {
		if _, err := again.Good(soon(t), initiator.TestUnitReady(lun)); err != nil {
			t.Fatal(err)
		}
	}
	useHealthyLUNs(t, again)
	d.Resume()
	if _, err := again.Good(soon(t), initiator.Read(hungLUN, 0, 8, blockSize)); err != nil {
		t.Error(err)
	}
}

func TestALUNThatIsStuckAnswersBusyBeyondItsLimitUntilItContinues(t *testing.T) {
	const sessions, reads = 3, 120 // more than the limit of 256, less than the window of each session
	d, process := hangingDisk(t, "")
	d.Hang()
	var waiting []chan answer
	for i := range sessions {
		commands := map[string][]initiator.Command{}
		for n := range reads {
			commands["READ"] = append(commands["READ"], initiator.Read(hungLUN, uint64(i*reads+n)*64, 8, blockSize))
		}
		answers, _ := begin(t, logIn(t, string(rune('a'+i))), commands)
		waiting = append(waiting, answers)
	}
	untilLogged(t, process, "a medium is stuck")
	late := logIn(t, "late")
	refused, count := begin(t, late, map[string][]initiator.Command{"READ": {initiator.Read(hungLUN, 100_000, 8, blockSize)},
		"WRITE": {initiator.Write(hungLUN, 100_000, make([]byte, blockSize), blockSize)}, "SYNCHRONIZE CACHE": {synchronizeCache(hungLUN)}})
	for range count {
		if a := <-refused; a.err != nil || a.Status != initiator.StatusBusy {
			t.Errorf("%s: %v, %v", a.what, a.Response, a.err)
		}
	}
	useHealthyLUNs(t, late)
	d.Resume()
	for _, answers := range waiting {
		for range reads {
			if a := <-answers; a.err != nil || a.Status != initiator.StatusGood {
				t.Errorf("%s: %v, %v", a.what, a.Response, a.err)
			}
		}
	}
	untilLogged(t, process, "a medium completes commands again")
	if _, err := late.Good(soon(t), initiator.Read(hungLUN, 100_000, 8, blockSize)); err != nil {
		t.Error(err)
	}
}

// mostCalls is limits::kDeviceThreads: the calls of a gateway that wait for one device.
const mostCalls = 32

func TestADeviceThatHangsHasNoMoreCallsThanItsLimit(t *testing.T) {
	d, _ := hangingDisk(t, "")
	session := logIn(t, "hanging")
	d.Hang()
	// LOG SENSE of the page Logical Block Provisioning asks the file system, which executes any number of such calls at once.
	query := initiator.Command{LUN: hungLUN, CDB: []byte{0x4d, 0, 0x4c, 0, 0, 0, 0, 1, 0, 0}, In: 256}
	commands := map[string][]initiator.Command{}
	for range 3 * mostCalls {
		commands["LOG SENSE"] = append(commands["LOG SENSE"], query)
	}
	answers, count := begin(t, session, commands)
	err := netns.Until(soon(t), func() error {
		if n := d.Waiting(); n < mostCalls {
			return fmt.Errorf("%d calls wait", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	useHealthyLUNs(t, session)
	if n := d.Waiting(); n != mostCalls {
		t.Errorf("%d calls wait for the device", n)
	}
	d.Resume()
	for range count {
		if a := <-answers; a.err != nil || a.Status != initiator.StatusGood {
			t.Errorf("%s after the disk hung: %v, %v", a.what, a.Response, a.err)
		}
	}
}

// Commands of a LUN that hangs, with more data than a session may have, leave a share to its other LUNs.
func TestDataForALUNThatHangsLeavesAShareOfTheSessionToOtherLUNs(t *testing.T) {
	const size, commands = 1 << 20, 100 // of 64 MiB for writes and 8 MiB for reads (limits::kSessionMemory, kMaxOutputBytes)
	data := bytes.Repeat([]byte{7}, size)
	for name, command := range map[string]func(lun uint16, block uint64) initiator.Command{
		"WRITE": func(lun uint16, block uint64) initiator.Command { return initiator.Write(lun, block, data, blockSize) },
		"READ": func(lun uint16, block uint64) initiator.Command {
			return initiator.Read(lun, block, size/blockSize, blockSize)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := hangingDisk(t, "")
			session := logIn(t, "host")
			d.Hang()
			var all []initiator.Command
			for i := range uint64(commands) {
				all = append(all, command(hungLUN, i%60*size/blockSize))
			}
			answers, count := begin(t, session, map[string][]initiator.Command{name: all})
			for d.Waiting() == 0 {
				runtime.Gosched()
			}
			for round := range uint64(8) {
				for _, lun := range []uint16{fileLUN, memoryLUN} {
					if _, err := session.Good(soon(t), command(lun, round*size/blockSize)); err != nil {
						t.Fatalf("LUN %d: %v", lun, err)
					}
				}
			}
			d.Resume()
			for range count {
				if a := <-answers; a.err != nil || a.Status != initiator.StatusGood {
					t.Errorf("%s after the disk hung: %v, %v", a.what, a.Response, a.err)
				}
			}
		})
	}
}

// WRITE SAME holds 32 MiB at a time (limits::kMaxHeldBytes). A READ of a later block, which the page cache has, waits for nothing.
func TestAWriteSameThatHangsHoldsOnlyItsPresentPiece(t *testing.T) {
	const later = 100_000 // block, beyond the first 32 MiB
	d, _ := hangingDisk(t, "")
	session := logIn(t, "host")
	data := bytes.Repeat([]byte{7}, 8*blockSize)
	if _, err := session.Good(soon(t), initiator.Write(hungLUN, later, data, blockSize)); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Good(soon(t), initiator.Read(hungLUN, later, 8, blockSize)); err != nil { // into the page cache
		t.Fatal(err)
	}
	d.Hang()
	whole := initiator.Command{LUN: hungLUN, CDB: make([]byte, 16), Out: make([]byte, blockSize), Writes: true}
	whole.CDB[0] = 0x93 // WRITE SAME (16) of 64 MiB
	binary.BigEndian.PutUint32(whole.CDB[10:], 64<<20/blockSize)
	answers, _ := begin(t, session, map[string][]initiator.Command{"WRITE SAME": {whole}})
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
	read, err := session.Good(soon(t), initiator.Read(hungLUN, later, 8, blockSize))
	if err != nil || !bytes.Equal(read, data) {
		t.Errorf("READ of a later block: %v", err)
	}
	d.Resume()
	if a := <-answers; a.err != nil || a.Status != initiator.StatusGood {
		t.Errorf("%s after the disk hung: %v, %v", a.what, a.Response, a.err)
	}
	read, err = session.Good(soon(t), initiator.Read(hungLUN, later, 8, blockSize))
	if err != nil || !bytes.Equal(read, make([]byte, 8*blockSize)) {
		t.Errorf("READ after WRITE SAME: %v", err)
	}
}
