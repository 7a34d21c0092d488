package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// listener is a process that has opened a port.
type listener struct{ process, name, unit string }

func (l listener) String() string {
	switch {
	case l.unit != "":
		return l.unit
	case l.process != "":
		return fmt.Sprintf("%s (process %s)", l.name, l.process)
	}
	return "another process"
}

// listening is the state of such a socket in /proc/net/tcp.
const listening = "0A"

// listenerAt finds the process that listens on a port, by the inode of its socket.
func (s *System) listenerAt(port uint16) listener {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := s.read(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) > 9 && words[3] == listening && strings.HasSuffix(words[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+words[9]+"]"] = true
			}
		}
	}
	files, _ := filepath.Glob(s.path("/proc/[0-9]*/fd/*")) // the pattern is valid
	for _, file := range files {
		if opened, err := os.Readlink(file); err == nil && sockets[opened] {
			process := filepath.Base(filepath.Dir(filepath.Dir(file)))
			name, _ := s.read("/proc/" + process + "/comm") // empty if it has ended meanwhile
			return listener{process, strings.TrimSpace(name), s.unitOf(process)}
		}
	}
	return listener{}
}

// unitOf returns the service of systemd to which a process belongs, by its control group.
func (s *System) unitOf(process string) string {
	text, err := s.read("/proc/" + process + "/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if unit := filepath.Base(strings.TrimSpace(line)); strings.HasSuffix(unit, ".service") {
			return unit
		}
	}
	return ""
}
