package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// staged returns a plugin with a staged volume.
func staged(t *testing.T, m *machine) *volume {
	t.Helper()
	v := m.volume(m.start(), fileSystem())
	if err := v.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUnstagingAVolumeWithoutSessionsFailsItsPendingCommandsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.logout(iqn)
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
		began := func(word string) int {
			return slices.IndexFunc(m.ran, func(line string) bool { return strings.HasPrefix(line, word) })
		}
		if fails, unmounts := began("dmsetup message"), began("umount"); fails < 0 || fails > unmounts {
			t.Errorf("umount would wait without end: %v", m.ran)
		}
		if flushed := m.commands("--flushbufs"); len(flushed) > 0 {
			t.Errorf("a device without paths is written to: %v", flushed)
		}
	})
}

// outage breaks all sessions, as when gateways do not respond. The returned function restores them.
func (m *machine) outage() (end func()) {
	put := func(session, disk string) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		for _, file := range m.glob("class/iscsi_session/*") {
			m.put(session+"\n", filepath.Join(file, "state"))
		}
		for _, file := range m.glob("devices/platform/host*/session*/target*/*") {
			m.put(disk+"\n", filepath.Join(file, "state"))
		}
	}
	put("FAILED", "transport-offline")
	return func() { put(stateLoggedIn, "running") }
}

func TestPendingWritesCompleteAfterAShortLossOfAllPaths(t *testing.T) {
	for name, capability := range map[string]*csi.VolumeCapability{"file system": fileSystem(), "raw block": rawBlock()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				v := m.volume(m.start(), capability)
				if err := v.stage(t.Context()); err != nil {
					t.Fatal(err)
				}
				end := m.outage()
				time.AfterFunc(returnBound-time.Second, end)
				if err := v.unstage(t.Context()); err != nil {
					t.Fatal(err)
				}
				if failed := append(m.commands("disablequeueing"), m.commands("fail_if_no_path")...); len(failed) > 0 {
					t.Errorf("commands that wait for a path failed: %v", failed)
				}
				if len(m.commands("--flushbufs")) == 0 {
					t.Error("nothing was written out")
				}
				m.nothingLeft()
			})
		})
	}
}

func TestPathsThatDoNotComeBackDelayNoUnstage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.outage()
		begun := time.Now()
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < returnBound || took > callBound {
			t.Errorf("the call took %s", took)
		}
		if len(m.commands("fail_if_no_path")) == 0 {
			t.Error("umount would wait without end")
		}
		m.nothingLeft()
	})
}

// Otherwise the volume counts as attached to the node permanently, and cannot be deleted.
func TestAVolumeThatAMachineWithoutOpenISCSICouldNotStageIsUnstagedAndOneWithASessionIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := func(command host.Command) (string, error) {
			return "", failed(command, statusNoProgram, "/usr/bin/env: 'iscsiadm': No such file or directory")
		}
		m := newMachine(t)
		m.instead["iscsiadm"] = missing
		v := m.volume(m.start(), fileSystem())
		if err := v.stage(t.Context()); err == nil {
			t.Fatal("it is staged without a session")
		}
		if err := v.unstage(t.Context()); err != nil {
			t.Error(err)
		}
		m.nothingLeft()

		other := newMachine(t)
		w := staged(t, other)
		other.instead["iscsiadm"] = missing // the program was removed, but the session stays
		if err := w.unstage(t.Context()); err == nil {
			t.Error("a session is left, and no error reports it")
		}
		clear(other.instead)
		if err := w.unstage(t.Context()); err != nil {
			t.Error(err)
		}
		other.nothingLeft()
	})
}

func TestADiskWhoseSessionIsNoLongerShownGoesWithTheMapThatHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.drop(m.glob("class/iscsi_session/*")[0])
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
	})
}

func TestUnstageWithoutMultipathdSaysSoInTimeAndIsDoneWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.logout(iqn)
		dead := func(command host.Command) (string, error) {
			time.Sleep(time.Second) // of the bubble's clock: the whole waiting time
			return "", failed(command, 1, "timeout receiving packet")
		}
		m.instead["multipathd disablequeueing"], m.instead["multipath -f"] = dead, dead
		begun := time.Now()
		hasCode(t, v.unstage(t.Context()), codes.Internal, "timeout receiving packet")
		if took := time.Since(begun); took > callBound+2*time.Second {
			t.Errorf("the call took %s", took)
		}
		if commands := m.commands("dmsetup message"); len(commands) != 1 {
			t.Errorf("the kernel did not get the order to fail waiting commands: %v", commands)
		}
		clear(m.instead)
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
	})
}

func TestTwoVolumesOfATargetThatGoAtOnceLeaveNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		first := staged(t, m)
		m.shows[6], m.sectors[6] = "3000000000000006", sectors
		second := m.volume(first.Service, rawBlock())
		second.id, second.attachment.LUN, second.attachment.NAA = "volume-6", 6, m.shows[6]
		if err := second.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Both volumes have removed their maps before either checks for other volumes.
		var together sync.WaitGroup
		together.Add(2)
		m.instead["multipath -w"] = func(host.Command) (string, error) {
			together.Done()
			together.Wait()
			return "", nil
		}
		ended := make(chan error)
		go func() { ended <- first.unstage(t.Context()) }()
		go func() { ended <- second.unstage(t.Context()) }()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		m.nothingLeft()
	})
}

func TestAnUnreadableRecordIsNamedAndDelaysNoOtherVolume(t *testing.T) {
	for name, content := range map[string]string{"cut off": `{"volume": "volu`, "of zeros": "\x00\x00", "empty": "", "without a name": "{}"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				v := staged(t, m)
				broken := m.volume(v.Service, rawBlock())
				broken.id = "volume-6"
				file := v.state.path(broken.id)
				m.put(content, file)
				hasCode(t, broken.stage(t.Context()), codes.Internal, file)
				hasCode(t, broken.unstage(t.Context()), codes.Internal, file, "remove the file")
				if err := v.unstage(t.Context()); err != nil {
					t.Errorf("the other volume: %v", err)
				}
				if have := m.glob("class/iscsi_session/*"); len(have) != len(m.portals) {
					t.Errorf("the unknown volume may need its sessions, and has %v", have)
				}
				if _, err := os.Stat(v.state.path(v.id)); err == nil {
					t.Error("the other volume's record is left")
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				if err := v.stage(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := v.unstage(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.nothingLeft()
			})
		})
	}
}

func TestARecordHoldsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := m.volume(m.start(), rawBlock())
		v.secrets = chapSecrets()
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(m.root, "state/*"))
		for _, file := range files {
			if content := text(file); strings.Contains(content, secret) || strings.Contains(content, mutualSecret) {
				t.Errorf("%s: %s", file, content)
			}
		}
		if shown := append(m.commands(secret), m.commands(mutualSecret)...); len(files) == 0 || len(shown) > 0 {
			t.Errorf("%d records; shown: %v", len(files), shown)
		}
	})
}
