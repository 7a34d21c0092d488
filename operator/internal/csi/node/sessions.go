package node

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// session is a session of the kernel's initiator, as sysfs shows it.
type session struct {
	// directory of it in sysfs.
	directory string
	portal    string
	// scsiHost is the number of its SCSI host.
	scsiHost string
	loggedIn bool
}

const stateLoggedIn = "LOGGED_IN"

var scsiHostOf = regexp.MustCompile(`/host(\d+)/`)

// text returns the content of a sysfs file; empty if it does not exist, because devices may disappear at any time.
func text(path ...string) string {
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// sessions returns the sessions with a target.
func (s *Service) sessions(iqn string) (found []session, err error) {
	err = s.host.Do(func() error {
		directories, err := filepath.Glob(filepath.Join(s.sysfs, "class/iscsi_session/session*"))
		for _, directory := range directories {
			if text(directory, "targetname") != iqn {
				continue
			}
			device, err := filepath.EvalSymlinks(filepath.Join(directory, "device"))
			if err != nil {
				continue // it has just ended
			}
			entry := session{directory: device, loggedIn: text(directory, "state") == stateLoggedIn}
			if match := scsiHostOf.FindStringSubmatch(device); match != nil {
				entry.scsiHost = match[1]
			}
			number := strings.TrimPrefix(filepath.Base(directory), "session")
			connection := filepath.Join(s.sysfs, "class/iscsi_connection/connection"+number+":0")
			entry.portal = net.JoinHostPort(text(connection, "persistent_address"), text(connection, "persistent_port"))
			found = append(found, entry)
		}
		return err
	})
	return found, err
}

// loggedIn returns the working sessions.
func loggedIn(all []session) []session {
	return slices.DeleteFunc(slices.Clone(all), func(entry session) bool { return !entry.loggedIn })
}
