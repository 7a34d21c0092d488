package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// machine is a host.Host that records its commands and executes them on a simulated kernel. Tests can replace the behaviour of
// each command.
type machine struct {
	kernel
	mutex sync.Mutex
	ran   []string
	// portals of the target, and whether they respond.
	portals map[string]bool
	// records are the node records of iscsiadm, by portal; discoveries are its discovery records.
	records, discoveries map[string]map[string]string
	// password that discovery requires; empty: none.
	password string
	// instead has functions that replace a command whose line contains the key.
	instead map[string]func(host.Command) (string, error)
	mounted []mount
	// boot identifies the present boot; tests of a reboot change it.
	boot string
}

const (
	iqn      = "iqn.2026-11.dev.sluice:a"
	naaRight = "3000000000000005"
	naaWrong = "3000000000000099"
	one, two = "10.0.0.1:3260", "10.0.1.1:3260"
	sectors  = 2048
)

// newMachine returns a machine, and a target of two portals with one volume, LUN 5.
func newMachine(t *testing.T) *machine {
	return &machine{kernel: kernel{t: t, root: t.TempDir(), shows: map[int]string{5: naaRight}, sectors: map[int]int{5: sectors}},
		portals: map[string]bool{one: true, two: true}, records: map[string]map[string]string{},
		discoveries: map[string]map[string]string{},
		instead:     map[string]func(host.Command) (string, error){}, boot: "boot-1"}
}

// start starts a plugin on the machine. The state directory still has the files of the previous one.
func (m *machine) start() *Service {
	m.t.Helper()
	s, err := New("node-1", m, filepath.Join(m.root, "state"))
	if err != nil {
		m.t.Fatal(err)
	}
	s.sysfs, s.udevData, s.mountTable = m.sys(), filepath.Join(m.root, "udev"), filepath.Join(m.root, "mounts")
	s.boot, s.nodeDatabases = m.boot, []string{filepath.Join(m.root, "nodes"), filepath.Join(m.root, "no-nodes")}
	s.initiatorFile = filepath.Join(m.root, "initiatorname.iscsi")
	m.put("InitiatorName=iqn.node\n", s.initiatorFile)
	m.tell()
	return s
}

// Do implements host.Host. It excludes commands, which change the files: a real kernel shows each of its files consistently.
func (m *machine) Do(call func() error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	err := call()
	m.settle()
	return err
}

// Run implements host.Host.
func (m *machine) Run(ctx context.Context, command host.Command) (string, error) {
	line := command.Name + " " + strings.Join(command.Arguments, " ")
	m.mutex.Lock()
	m.ran = append(m.ran, command.String())
	var other func(host.Command) (string, error)
	for part, do := range m.instead {
		if do != nil && strings.Contains(line, part) {
			other = do
		}
	}
	m.mutex.Unlock()
	if ctx.Err() != nil {
		return "", failed(command, -1, "not done in time")
	}
	if other != nil {
		return other(command)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	switch command.Name {
	case "iscsiadm":
		return m.iscsiadm(command)
	case "multipathd", "multipath":
		return m.multipath(command)
	case "mount":
		m.mount(command.Arguments)
	case "umount":
		point := m.real(command.Arguments[0])
		m.mounted = slices.DeleteFunc(m.mounted, func(mounted mount) bool { return mounted.point == point })
	case "blkid":
		return "TYPE=ext4\n", nil
	}
	m.tell()
	return "", nil
}

func failed(command host.Command, status int, output string) error {
	return &host.ExitError{Command: command.String(), Status: status, Said: output}
}

// tell writes the mount table.
func (m *machine) tell() {
	var table strings.Builder
	for i, mounted := range m.mounted {
		fmt.Fprintf(&table, "%d 1 %s %s %s rw - ext4 none rw\n", i, mounted.number, mounted.root, mounted.point)
	}
	m.put(table.String(), filepath.Join(m.root, "mounts"))
}

// mount does the work of mount(8): it mounts a device's file system, binds a folder, or binds the file of a device.
func (m *machine) mount(arguments []string) {
	what, point := arguments[len(arguments)-2], m.real(arguments[len(arguments)-1])
	made := mount{text(m.sys("block", filepath.Base(what), "dev")), "/", point}
	if arguments[0] == "--bind" && made.number != "" {
		made = mount{"0:5", "/" + filepath.Base(what), point} // of devtmpfs
	}
	for _, at := range m.mounted {
		if at.point == m.real(what) {
			made.number = at.number
		}
	}
	m.mounted = append(m.mounted, made)
}

// real returns a path without symbolic links, as the kernel records it; a missing path is returned unchanged.
func (m *machine) real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (m *machine) iscsiadm(command host.Command) (string, error) {
	line := command.Arguments
	after := func(flag string) string {
		if at := slices.Index(line, flag); at >= 0 {
			return line[at+1]
		}
		return ""
	}
	portal, records := after("-p"), m.records
	if after("-m") == "discoverydb" {
		records = m.discoveries
	}
	switch {
	case after("-m") == "discovery", slices.Contains(line, "--discover"):
		return m.sendTargets(command, portal)
	case after("-o") == "new":
		records[portal] = map[string]string{}
	case after("-o") == "update":
		for i, word := range line {
			if word == "-n" {
				records[portal][line[i+1]] = line[i+3]
			}
		}
	case after("-o") == "show":
		return m.show(command, portal)
	case slices.Contains(line, "--login"):
		if !m.portals[portal] {
			return "", failed(command, 8, "connection timed out")
		}
		m.login(after("-T"), portal)
	case slices.Contains(line, "--logout"):
		if m.logout(after("-T")) == 0 {
			return "", failed(command, statusNoObject, "No matching sessions found")
		}
	case after("-m") == "discoverydb" && after("-o") == "delete":
		delete(m.discoveries, portal)
	case after("-o") == "delete":
		clear(m.records)
	}
	return "", nil
}

func (m *machine) sendTargets(command host.Command, portal string) (output string, err error) {
	if !m.portals[portal] {
		return "", failed(command, 4, "cannot make connection")
	}
	if m.password != "" && m.discoveries[portal]["discovery.sendtargets.auth.password"] != m.password {
		return "", failed(command, 24, "iSCSI login failed due to authorization failure")
	}
	for other := range m.portals {
		output += other + ",1 " + iqn + "\n"
	}
	return output, nil
}

// refuses fails as a command does when a target refuses a login.
func (m *machine) refuses(command host.Command) (string, error) {
	return "", failed(command, 24, "iSCSI login failed due to authorization failure")
}

func (m *machine) show(command host.Command, portal string) (output string, err error) {
	record, ok := m.records[portal]
	if !ok {
		return "", failed(command, statusNoObject, "No records found")
	}
	for key, value := range record {
		output += key + " = " + value + "\n"
	}
	return output, nil
}

func (m *machine) multipath(command host.Command) (string, error) {
	last := command.Arguments[len(command.Arguments)-1]
	switch strings.Join(command.Arguments[:len(command.Arguments)-1], " ") {
	case "add path":
		disk, err := os.Readlink(m.sys("block", last, "device"))
		if err != nil {
			return "fail", nil
		}
		page, _ := os.ReadFile(filepath.Join(disk, "vpd_pg83"))
		m.join(last, "3"+naaOf(page))
		return "ok\n", nil
	case "resize map":
		for _, dm := range m.glob("block/dm-*") {
			for _, slave := range m.glob("block", filepath.Base(dm), "slaves/*") {
				m.put(text(m.sys("block", filepath.Base(slave), "size")), filepath.Join(dm, "size"))
			}
		}
	case "-f":
		if !m.unmap(last) {
			return "", failed(command, 1, "no such map")
		}
	}
	return "", nil
}

// commands returns the executed commands whose line contains a text.
func (m *machine) commands(part string) (found []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, line := range m.ran {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// nothingLeft asserts that no trace of a volume is left, neither on the machine nor in the plugin's memory.
func (m *machine) nothingLeft() {
	m.t.Helper()
	left := slices.Concat(m.glob("class/iscsi_session/*"), m.glob("block/*"))
	state, _ := filepath.Glob(filepath.Join(m.root, "state/*"+suffix))
	if left = append(left, state...); len(left)+len(m.mounted)+len(m.records)+len(m.discoveries) > 0 {
		m.t.Errorf("left behind: %v, mounts %v, node records %v, discovery records %v", left, m.mounted, m.records, m.discoveries)
	}
}
