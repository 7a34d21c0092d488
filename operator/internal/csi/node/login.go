package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/host"
)

// Bounds of a login, and of a discovery at a portal. A silent portal must not use up the call's time, because another one may
// answer.
const (
	loginBound     = 40 * time.Second
	discoveryBound = 10 * time.Second
	// statusNoObject is the exit status of iscsiadm if no object was found (ISCSI_ERR_NO_OBJS_FOUND).
	statusNoObject = 21
	// statusNoProgram is the exit status of env if the program does not exist.
	statusNoProgram = 127
	// statusSession is the exit status of iscsiadm if there is a session already (ISCSI_ERR_SESS_EXISTS).
	statusSession = 15
)

// settings of a node record: there are no automatic logins, and only the LUN of a staged volume is scanned. A silent path is
// abandoned after 5 s and never sooner, because gateways rely on that. With the default of cmds_max, 128, four LUNs on a disk that
// hangs would occupy the whole session.
var settings = [][2]string{
	{"node.startup", "manual"},
	{"node.session.scan", "manual"},
	{"node.session.initial_login_retry_max", "1"},
	{"node.conn[0].timeo.login_timeout", "5"},
	{"node.conn[0].timeo.noop_out_interval", "2"},
	{"node.conn[0].timeo.noop_out_timeout", "3"},
	{"node.session.timeo.replacement_timeout", "5"},
	{"node.session.cmds_max", "1024"},
}

func iscsiadm(arguments ...string) host.Command { return host.New("iscsiadm", arguments...) }

// connect logs in to all portals of a target that have no session. It succeeds if there is at least one session in the end.
func (s *Service) connect(ctx context.Context, a attachment.Attachment, chap attachment.CHAP) error {
	portals := s.discover(ctx, a, chap)
	s.logins.Lock()
	defer s.logins.Unlock()
	have, err := s.sessions(a.IQN)
	if err != nil {
		return err
	}
	var problems []string
	for _, problem := range s.loginAll(ctx, a.IQN, lacking(portals, have), chap) {
		problems = append(problems, problem.Error())
	}
	if have, err = s.sessions(a.IQN); err != nil {
		return err
	}
	if len(loggedIn(have)) == 0 {
		slices.Sort(problems)
		return fmt.Errorf("no session with %s by any of %s: %s", a.IQN, strings.Join(portals, ", "), strings.Join(problems, "; "))
	}
	return nil
}

// lacking returns the portals without a session. A broken session counts as one, because iscsid restores it.
func lacking(portals []string, have []session) []string {
	return slices.DeleteFunc(slices.Clone(portals), func(portal string) bool {
		return slices.ContainsFunc(have, func(found session) bool { return found.portal == portal })
	})
}

// loginAll logs in to portals concurrently, and returns the ones that failed. The caller holds the lock of logins.
func (s *Service) loginAll(ctx context.Context, iqn string, portals []string, chap attachment.CHAP) map[string]error {
	var logins sync.WaitGroup
	problems := make([]error, len(portals))
	for i, portal := range portals {
		logins.Go(func() { problems[i] = s.login(ctx, iqn, portal, chap) })
	}
	logins.Wait()
	failed := map[string]error{}
	for i, problem := range problems {
		if problem != nil {
			slog.WarnContext(ctx, "no login", "portal", portals[i], "target", iqn, "problem", problem)
			failed[portals[i]] = problem
		}
	}
	return failed
}

func (s *Service) login(ctx context.Context, iqn, portal string, chap attachment.CHAP) error {
	ctx, cancel := context.WithTimeout(ctx, loginBound)
	defer cancel()
	of := []string{"-m", "node", "-T", iqn, "-p", portal}
	if _, err := s.host.Run(ctx, iscsiadm(append(slices.Clone(of), "-o", "new")...)); err != nil {
		return err
	}
	with := append(slices.Clone(settings), authentication("node.session.auth.", chap)...)
	if _, err := s.host.Run(ctx, update(of, with)); err != nil {
		return err
	}
	_, err := s.host.Run(ctx, iscsiadm(append(slices.Clone(of), "--login")...))
	if host.Status(err) == statusSession {
		return nil
	}
	return err
}

// update returns the command that changes settings of a record. Passwords are not logged.
func update(of []string, settings [][2]string) host.Command {
	command := iscsiadm(append(slices.Clone(of), "-o", "update")...)
	for _, setting := range settings {
		command.Arguments = append(command.Arguments, "-n", setting[0], "-v", setting[1])
		if strings.Contains(setting[0], ".auth.password") {
			command.Secret = append(command.Secret, len(command.Arguments)-1)
		}
	}
	return command
}

// authentication returns settings of a node record or, with another prefix, of a discovery record.
func authentication(prefix string, chap attachment.CHAP) [][2]string {
	if chap.Own == nil {
		return nil
	}
	all := [][2]string{{prefix + "authmethod", "CHAP"}, {prefix + "username", chap.Own.User}, {prefix + "password", chap.Own.Secret}}
	if chap.Mutual != nil {
		all = append(all, [2]string{prefix + "username_in", chap.Mutual.User}, [2]string{prefix + "password_in", chap.Mutual.Secret})
	}
	return all
}

// detachVolume forgets a detached volume, and logs out of its target unless another volume of the target is staged here. It holds
// the lock of logins throughout, so of two volumes that leave at once the second one sees that it is the last.
func (s *Service) detachVolume(ctx context.Context, gone *record) error {
	s.logins.Lock()
	defer s.logins.Unlock()
	staged, err := s.state.all()
	last := !slices.ContainsFunc(staged, func(other *record) bool { return other.Volume != gone.Volume && other.IQN == gone.IQN })
	if err != nil { // an unreadable record may be of this target
		slog.WarnContext(ctx, "sessions are kept", "target", gone.IQN, "problem", err)
	} else if last {
		if err := s.logout(ctx, gone.IQN); err != nil {
			return err
		}
		s.portals.set(gone.IQN, 0)
	}
	return s.state.remove(gone.Volume)
}

// logout logs out of a target, and deletes its node records.
func (s *Service) logout(ctx context.Context, iqn string) error {
	for _, last := range [][]string{{"--logout"}, {"-o", "delete"}} {
		_, err := s.host.Run(ctx, iscsiadm(append([]string{"-m", "node", "-T", iqn}, last...)...))
		switch host.Status(err) {
		case 0, statusNoObject:
		case statusNoProgram: // a machine without open-iscsi: the stage failed, and kubelet unstages
			if left, problem := s.sessions(iqn); problem != nil || len(left) > 0 {
				return err
			}
			return nil
		default:
			return err
		}
	}
	return s.removeNodeRecords(iqn)
}

// nodeDatabases are the folders in which open-iscsi keeps node records, of Debian and of other distributions.
var nodeDatabases = []string{"/etc/iscsi/nodes", "/var/lib/iscsi/nodes"}

// removeNodeRecords deletes node records that iscsiadm does not: a file without content, as a power failure leaves it, is no record to
// it, and makes each later `-o new` for its portal fail.
func (s *Service) removeNodeRecords(iqn string) error {
	if iqn == "" || strings.Contains(iqn, "/") {
		return nil // no target has such a name (RFC 7143 §4.2.7.2)
	}
	return s.host.Do(func() error {
		var problems []error
		for _, folder := range s.nodeDatabases {
			problems = append(problems, os.RemoveAll(filepath.Join(folder, iqn)))
		}
		return errors.Join(problems...)
	})
}
