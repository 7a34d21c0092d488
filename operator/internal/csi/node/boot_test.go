package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// reboot leaves what a machine has after its next boot: files, and nothing of the kernel.
func (m *machine) reboot() *Service {
	m.t.Helper()
	for _, dm := range m.glob("block/dm-*") {
		m.unmap(text(dm, "dm/name"))
	}
	m.logout(iqn)
	m.mounted, m.ran, m.boot = nil, nil, m.boot+"'"
	return m.start()
}

// scanAll makes each session's disk of LUN 5, as the machine's own service does with its default settings.
func (m *machine) scanAll() {
	for _, directory := range m.glob("class/scsi_host/*") {
		m.scan(strings.TrimPrefix(filepath.Base(directory), "host"), 5)
	}
}

// works asserts that a volume is staged by one session, path and map of each portal, and nothing else.
func (v *volume) works(err error, portals ...string) {
	v.machine.t.Helper()
	if err == nil {
		err = v.publish(v.machine.t.Context())
	}
	if err != nil {
		v.machine.t.Fatal(err)
	}
	sessions, _ := v.sessions(v.attachment.IQN)
	var at []string
	for _, session := range sessions {
		at = append(at, session.portal)
	}
	slices.Sort(at)
	if !slices.Equal(at, portals) {
		v.machine.t.Errorf("sessions at %v, and the target has %v", at, portals)
	}
	if have := v.machine.glob("block/dm-*/slaves/*"); len(have) != len(portals) {
		v.machine.t.Errorf("paths of maps: %v", have)
	}
}

func TestAVolumeIsStagedAgainAfterAReboot(t *testing.T) {
	for name, leave := range map[string]func(m *machine, v *volume){
		"with its node records":     func(*machine, *volume) {},
		"with an empty node record": func(m *machine, _ *volume) { m.tear(two) },
		"without its node records":  func(m *machine, _ *volume) { clear(m.records) },
		"during its unstaging":      func(_ *machine, v *volume) { v.leave() },
		"under another LUN": func(m *machine, v *volume) {
			m.shows, v.attachment.LUN = map[int]string{6: naaRight}, 6
			m.sectors[6] = sectors
		},
		"as another kind of volume": func(_ *machine, v *volume) { v.capability = rawBlock() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				v := staged(t, m)
				leave(m, v)
				v.Service = m.reboot()
				v.works(v.stage(t.Context()), one, two)
				if err := v.unpublish(t.Context()); err != nil {
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

// tear empties the file of a node record. iscsiadm then neither deletes the record nor makes another one.
func (m *machine) tear(portal string) {
	file := filepath.Join(m.root, "nodes", iqn, portal)
	m.put("", file)
	m.instead["-p "+portal+" -o new"] = func(command host.Command) (string, error) {
		if _, err := os.Stat(file); err == nil {
			return "", failed(command, 6, "encountered iSCSI database failure")
		}
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return m.iscsiadm(command)
	}
}

// leave does what an unstaging does before the power is cut.
func (v *volume) leave() {
	v.machine.t.Helper()
	record, err := v.state.get(v.id)
	if err == nil {
		record.Leaving = true
		err = v.state.put(record)
	}
	if err != nil {
		v.machine.t.Fatal(err)
	}
}

// The machine's service logs in at boot by node records whose settings were not stored yet, and to portals that the target has lost.
func TestSessionsOfTheMachinesOwnServiceAreReplacedByTheStageAfterAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const former = "10.0.0.9:3260"
		m := newMachine(t)
		v := staged(t, m)
		v.Service = m.reboot()
		m.login(iqn, one)
		m.login(iqn, former)
		m.scanAll()
		foreign := m.glob("class/iscsi_session/*")
		v.works(v.stage(t.Context()), one, two)
		for _, session := range m.glob("class/iscsi_session/*") {
			if slices.Contains(foreign, session) {
				t.Errorf("%s is not of this stage", session)
			}
		}
	})
}

func TestVolumesOfATargetAreStagedConcurrentlyAfterAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = "3000000000000006"
		m := newMachine(t)
		m.shows[6], m.sectors[6] = other, sectors
		first := staged(t, m)
		second := m.volume(first.Service, fileSystem())
		second.id, second.attachment.LUN, second.attachment.NAA = "volume-6", 6, other
		if err := second.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := m.reboot()
		first.Service, second.Service = s, s
		ended := make(chan error)
		for _, v := range []*volume{first, second} {
			go func() { ended <- v.stage(t.Context()) }()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if maps, sessions := m.glob("block/dm-*"), m.glob("class/iscsi_session/*"); len(maps) != 2 || len(sessions) != 2 {
			t.Errorf("maps %v, sessions %v", maps, sessions)
		}
		if ended := m.commands("--logout"); len(ended) != 1 {
			t.Errorf("logouts: %v", ended)
		}
	})
}

func TestRemainsOfAVolumeThatLeftTheNodeWhileItWasDownAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		staged(t, m)
		s := m.reboot()
		m.login(iqn, one)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Keep(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		m.nothingLeft()
	})
}

func TestAPluginThatStartsAgainInTheSameBootKeepsWhatIsStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		v.Service = m.start()
		v.clearAll(t.Context())
		v.works(v.stage(t.Context()), one, two)
		if ended := m.commands("--logout"); len(ended) > 0 {
			t.Errorf("logouts: %v", ended)
		}
	})
}

// An administrator may mount the volume before kubelet stages it.
func TestAVolumeWhoseMapIsHeldAfterARebootIsNotStagedAndTheHolderIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		v.Service = m.reboot()
		m.login(iqn, one)
		m.scanAll()
		for _, disk := range m.glob("block/sd*") {
			m.join(filepath.Base(disk), "3"+naaRight)
		}
		m.instead["multipath -f"] = func(command host.Command) (string, error) { return "", failed(command, 1, "map in use") }
		hasCode(t, v.stage(t.Context()), codes.Unavailable, v.id, "map in use")
		if ended := m.commands("--logout"); len(ended) > 0 {
			t.Errorf("logouts: %v", ended)
		}
	})
}
