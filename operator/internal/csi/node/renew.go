package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/host"
)

// renew logs in to portals of a target that there is no session with, and has its volumes use the paths. What portals there are is
// asked at one that there is a session with.
func (s *Service) renew(ctx context.Context, iqn string, refusals map[string]refusal) error {
	have, err := s.sessions(iqn)
	if err != nil {
		return err
	}
	var portals []string
	var asked string
	for _, one := range loggedIn(have) {
		chap, err := s.recorded(ctx, iqn, one.portal)
		if err != nil {
			slog.WarnContext(ctx, "a portal is not asked", "portal", one.portal, "target", iqn, "problem", err)
			continue
		}
		if portals = s.ask(ctx, iqn, one.portal, chap); len(portals) > 0 {
			asked = one.portal
			break
		}
	}
	if len(portals) == 0 {
		return nil // nobody answers: it is iscsid that mends sessions
	}
	s.portals.set(iqn, len(portals))
	for portal := range refusals {
		if !slices.Contains(portals, portal) {
			delete(refusals, portal)
		}
	}
	missing := slices.DeleteFunc(lacking(portals, have), func(portal string) bool { return time.Now().Before(refusals[portal].until) })
	if len(missing) > 0 {
		err = s.extend(ctx, iqn, asked, missing, refusals)
	}
	return errors.Join(err, s.rejoinAll(ctx, iqn))
}

// extend logs in to further portals as it was logged in to one, unless the last volume of the target is leaving.
func (s *Service) extend(ctx context.Context, iqn, like string, portals []string, refusals map[string]refusal) error {
	s.logins.Lock()
	defer s.logins.Unlock()
	volumes, _ := s.volumesOf() // what cannot be read needs no more paths than it has
	if len(volumes[iqn]) == 0 {
		return nil
	}
	have, err := s.sessions(iqn) // a stage may have been faster
	if err != nil {
		return err
	}
	chap, err := s.recorded(ctx, iqn, like)
	if err != nil {
		return err
	}
	portals = lacking(portals, have)
	failed := s.enter(ctx, iqn, portals, chap)
	for _, portal := range portals {
		if failed[portal] == nil {
			slog.InfoContext(ctx, "logged in to a portal that came later", "portal", portal, "target", iqn)
			delete(refusals, portal)
			continue
		}
		rest := min(max(firstRest, 2*refusals[portal].rest), longestRest)
		refusals[portal] = refusal{rest, time.Now().Add(rest)}
	}
	return nil
}

// recorded is how iscsid logs in to a portal: secrets are in its node records and nowhere else.
func (s *Service) recorded(ctx context.Context, iqn, portal string) (attachment.CHAP, error) {
	said, err := s.host.Run(ctx, iscsiadm("-m", "node", "-T", iqn, "-p", portal, "-o", "show", "-S"))
	if err != nil { // what it said is not repeated: it may be part of a record
		return attachment.CHAP{}, fmt.Errorf("how %s is logged in to cannot be read: iscsiadm ended with status %d", portal, host.Status(err))
	}
	record := map[string]string{}
	for line := range strings.Lines(said) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && value != "<empty>" {
			record[key] = value
		}
	}
	if record["node.session.auth.authmethod"] != "CHAP" {
		return attachment.CHAP{}, nil
	}
	return attachment.ReadCHAP(record)
}

// rejoinAll has the volumes of a target use the sessions that there are.
func (s *Service) rejoinAll(ctx context.Context, iqn string) error {
	volumes, _ := s.volumesOf()
	var problems []error
	for _, one := range volumes[iqn] {
		problems = append(problems, s.rejoin(ctx, one))
	}
	return errors.Join(problems...)
}

// rejoinBound is how long a volume's new paths are waited for. Calls for the volume are refused meanwhile, and come again.
const rejoinBound = 10 * time.Second

// rejoin puts paths that a volume's map lacks into it, if they are the volume's.
func (s *Service) rejoin(ctx context.Context, known *record) error {
	if lacks, err := s.lacksPaths(known.Attachment); err != nil || !lacks {
		return err
	}
	ctx, staged, done, err := s.work(ctx, known.Volume)
	if status.Code(err) == codes.Aborted {
		return nil // next time
	}
	if err != nil {
		return err
	}
	defer done()
	if staged == nil || staged.Leaving {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinBound)
	defer cancel()
	have, err := s.find(staged.Attachment)
	if err != nil || have == nil {
		return err
	}
	all, err := s.appear(ctx, staged.Attachment)
	if err != nil {
		return err
	}
	var right []path
	for _, one := range all {
		if slices.Contains(have.paths, one.name) {
			continue
		}
		if err := s.verify(staged.Attachment, []path{one}); err != nil {
			return errors.Join(err, s.forget(ctx, []path{one}))
		}
		right = append(right, one)
	}
	if err := s.known(ctx, right); err != nil {
		return err
	}
	s.tell(ctx, have, right)
	_, err = s.joined(ctx, staged.Attachment, right)
	return err
}

// lacksPaths says that a volume has a map with fewer paths than there are sessions. Without a map it is not staged yet.
func (s *Service) lacksPaths(a attachment.Attachment) (bool, error) {
	have, err := s.sessions(a.IQN)
	if err != nil {
		return false, err
	}
	found, err := s.find(a)
	return found != nil && len(found.paths) < len(loggedIn(have)), err
}
