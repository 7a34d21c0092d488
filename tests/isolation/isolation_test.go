// Package isolation tests that a device which hangs affects no LUN on another device (DESIGN R14, R15), with a real gateway.
package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	iqn       = "iqn.2026-11.dev.sluice:isolation"
	portal    = "127.0.0.1:3260"
	blockSize = 512

	hungLUN, fileLUN, memoryLUN = 0, 1, 2
)

// TestMain runs in separate namespaces, so that mounts, processes and ports disappear however the tests end.
func TestMain(m *testing.M) {
	if err := netns.Isolate(); err != nil {
		noNamespaces = err.Error()
	}
	os.Exit(m.Run())
}

var noNamespaces string

// hangingDisk returns a gateway with a LUN on a disk that a test can hang, a LUN in a file on another disk, and a LUN in memory.
// `options` are further YAML keys of the first LUN.
func hangingDisk(t *testing.T, options string) (*disk.Disk, *netns.Process) {
	t.Helper()
	return hangingDiskWith(t, options, func(at string) string { return filepath.Join(at, "image") })
}

// hangingDiskWith is hangingDisk with the first LUN in the file that `prepare` returns, on the disk mounted at a folder.
func hangingDiskWith(t *testing.T, options string, prepare func(at string) string) (*disk.Disk, *netns.Process) {
	t.Helper()
	if noNamespaces != "" {
		t.Skip(noNamespaces)
	}
	program := os.Getenv("SLUICE_GATEWAY")
	if program == "" {
		t.Skip("SLUICE_GATEWAY names no gateway")
	}
	directory := t.TempDir()
	at := filepath.Join(directory, "disk")
	d, err := disk.Mount(filepath.Join(directory, "backing"), at)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	image := prepare(at)
	process, err := netns.Standalone{Program: program, Name: "gateway", Directory: directory, Listen: []string{portal}, Target: iqn,
		LUNs: []string{
			fmt.Sprintf("backend: file, path: %s, size: 64MiB%s", image, options),
			fmt.Sprintf("backend: file, path: %s, size: 64MiB", filepath.Join(directory, "image")),
			"backend: memory, size: 16MiB",
		}}.Process()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Resume() // a process cannot end before its calls do
		_ = process.Kill()
		untilPortIsFree(t)
		if t.Failed() {
			t.Log(process.LogTail(20))
		}
	})
	// The kernel may close the listening socket of the former process's ring after its end, and a connection to it is reset.
	untilLogged(t, process, "listening")
	if err := netns.UntilListens(soon(t), process, portal); err != nil {
		t.Fatal(err)
	}
	return d, process
}

// untilPortIsFree waits for the release process of a gateway that was killed: it may end some milliseconds later.
func untilPortIsFree(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // that of the test is over in a cleanup
	defer cancel()
	err := netns.Until(ctx, func() error {
		connection, err := net.Dial("tcp", portal)
		if err != nil {
			return nil //nolint:nilerr // nothing listens
		}
		return errors.Join(errors.New(portal+" is in use"), connection.Close())
	})
	if err != nil {
		t.Error(err)
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func logIn(t *testing.T, name string) *initiator.Session {
	t.Helper()
	session, err := initiator.Login(soon(t), initiator.Options{Portal: portal, Target: iqn, Initiator: "iqn.2026-11.dev.sluice:" + name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	for _, lun := range []uint16{hungLUN, fileLUN, memoryLUN} { // the unit attention of a new nexus
		if _, err := session.Good(soon(t), initiator.TestUnitReady(lun)); err != nil {
			t.Fatal(err)
		}
	}
	return session
}

// synchronizeCache is SYNCHRONIZE CACHE (10) of the whole LUN.
func synchronizeCache(lun uint16) initiator.Command {
	return initiator.Command{LUN: lun, CDB: []byte{0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}}
}

type answer struct {
	what string
	initiator.Response
	err error
}

// begin runs the commands at the same time, and returns their answers as they arrive.
func begin(t *testing.T, session *initiator.Session, commands map[string][]initiator.Command) (answers chan answer, count int) {
	t.Helper()
	for _, some := range commands {
		count += len(some)
	}
	answers = make(chan answer, count)
	ctx := soon(t)
	for what, some := range commands {
		for _, command := range some {
			go func() {
				response, err := session.Do(ctx, command)
				answers <- answer{what, response, err}
			}()
		}
	}
	return answers, count
}

// hangingCommands are more than the device has threads, of each kind that waits for a device.
func hangingCommands(reads, writes, flushes int) map[string][]initiator.Command {
	commands := map[string][]initiator.Command{}
	for i := range reads {
		commands["READ"] = append(commands["READ"], initiator.Read(hungLUN, uint64(i)*1024, 128, blockSize))
	}
	for i := range writes {
		commands["WRITE"] = append(commands["WRITE"],
			initiator.Write(hungLUN, 100_000+uint64(i)*64, bytes.Repeat([]byte{byte(i)}, 8*blockSize), blockSize))
	}
	for range flushes {
		commands["SYNCHRONIZE CACHE"] = append(commands["SYNCHRONIZE CACHE"], synchronizeCache(hungLUN))
	}
	// LOG SENSE of the page Logical Block Provisioning, and GET LBA STATUS.
	commands["LOG SENSE"] = []initiator.Command{{LUN: hungLUN, CDB: []byte{0x4d, 0, 0x4c, 0, 0, 0, 0, 1, 0, 0}, In: 256}}
	commands["GET LBA STATUS"] = []initiator.Command{
		{LUN: hungLUN, CDB: []byte{0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, In: 256}}
	return commands
}

// useHealthyLUNs reads and writes the other LUNs. It succeeds only if no command waits for the disk that hangs.
func useHealthyLUNs(t *testing.T, session *initiator.Session) {
	t.Helper()
	for round := range 50 {
		for _, lun := range []uint16{fileLUN, memoryLUN} {
			block, data := uint64(round)*64, bytes.Repeat([]byte{byte(round + 1)}, 8*blockSize)
			if _, err := session.Good(soon(t), initiator.Write(lun, block, data, blockSize)); err != nil {
				t.Fatal(err)
			}
			if _, err := session.Good(soon(t), synchronizeCache(lun)); err != nil {
				t.Fatal(err)
			}
			read, err := session.Good(soon(t), initiator.Read(lun, block, 8, blockSize))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read, data) {
				t.Fatalf("LUN %d: other data than written", lun)
			}
		}
	}
}

func TestADiskThatHangsDelaysNoOtherLUN(t *testing.T) {
	for name, options := range map[string]string{"durable": "", "cached": ", write-cache: on", "direct": ", io: direct, write-cache: on"} {
		t.Run(name, func(t *testing.T) {
			d, process := hangingDisk(t, options)
			// Two reactors: one of these sessions shares a reactor with the commands that hang, whichever has them.
			hanging, second, third := logIn(t, "hanging"), logIn(t, "second"), logIn(t, "third")
			d.Hang()
			answers, count := begin(t, hanging, hangingCommands(60, 20, 20))
			for d.Waiting() == 0 {
				runtime.Gosched()
			}
			for _, session := range []*initiator.Session{hanging, second, third} {
				useHealthyLUNs(t, session)
			}
			logIn(t, "late") // TEST UNIT READY of the LUN that hangs is answered, too
			select {
			case a := <-answers:
				t.Errorf("%s ended while the disk hangs: %v, %v", a.what, a.Response, a.err)
			default:
			}
			for _, session := range []*initiator.Session{hanging, second, third} {
				if lost := session.Lost(); lost != nil {
					t.Error(lost)
				}
			}
			d.Resume()
			for range count {
				if a := <-answers; a.err != nil || a.Status != initiator.StatusGood {
					t.Errorf("%s after the disk hung: %v, %v", a.what, a.Response, a.err)
				}
			}
			if unexpected := process.Unexpected(); len(unexpected) != 0 {
				t.Error(unexpected)
			}
		})
	}
}
