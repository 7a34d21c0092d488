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

// renew logs in to portals of a target that have no session, and adds the new paths to the target's volumes. It discovers the
// portals through a portal with a session.
func (s *Service) renew(ctx context.Context, iqn string, refusals map[string]refusal) error {
	have, err := s.sessions(iqn)
	if err != nil {
		return err
	}
	var portals []string
	var asked string
	for _, session := range loggedIn(have) {
		chap, err := s.recorded(ctx, iqn, session.portal)
		if err != nil {
			slog.WarnContext(ctx, "a portal is not asked", "portal", session.portal, "target", iqn, "problem", err)
			continue
		}
		if portals = s.ask(ctx, iqn, session.portal, chap); len(portals) > 0 {
			asked = session.portal
			break
		}
	}
	if len(portals) == 0 {
		return nil // no portal answers: iscsid restores sessions
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

// extend logs in to further portals with the credentials of an existing login, unless the last volume of the target is leaving.
func (s *Service) extend(ctx context.Context, iqn, like string, portals []string, refusals map[string]refusal) error {
	s.logins.Lock()
	defer s.logins.Unlock()
	volumes, _ := s.volumesOf() // an unreadable volume needs no further paths
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
	failed := s.loginAll(ctx, iqn, portals, chap)
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

// recorded returns the credentials with which iscsid logs in to a portal. Only its node records have the secrets.
func (s *Service) recorded(ctx context.Context, iqn, portal string) (attachment.CHAP, error) {
	output, err := s.host.Run(ctx, iscsiadm("-m", "node", "-T", iqn, "-p", portal, "-o", "show", "-S"))
	if err != nil { // the output is not repeated: it may contain a part of a record
		return attachment.CHAP{}, fmt.Errorf("how %s is logged in to cannot be read: iscsiadm ended with status %d", portal, host.Status(err))
	}
	record := map[string]string{}
	for line := range strings.Lines(output) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && value != "<empty>" {
			record[key] = value
		}
	}
	if record["node.session.auth.authmethod"] != "CHAP" {
		return attachment.CHAP{}, nil
	}
	return attachment.ReadCHAP(record)
}

// rejoinAll adds the present sessions' paths to the volumes of a target.
func (s *Service) rejoinAll(ctx context.Context, iqn string) error {
	volumes, _ := s.volumesOf()
	var problems []error
	for _, staged := range volumes[iqn] {
		problems = append(problems, s.rejoin(ctx, staged))
	}
	return errors.Join(problems...)
}

// rejoinBound is the time to wait for a volume's new paths. Calls for the volume are refused meanwhile, and repeated by kubelet.
const rejoinBound = 10 * time.Second

// rejoin adds the paths that a volume's map lacks, if they belong to the volume.
func (s *Service) rejoin(ctx context.Context, known *record) error {
	if lacks, err := s.lacksPaths(known.Attachment); err != nil || !lacks {
		return err
	}
	ctx, staged, done, err := s.work(ctx, known.Volume)
	if status.Code(err) == codes.Aborted {
		return nil // the next check tries again
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
	all, err := s.awaitPaths(ctx, staged.Attachment)
	if err != nil {
		return err
	}
	var right []path
	for _, p := range all {
		if slices.Contains(have.paths, p.name) {
			continue
		}
		if err := s.verify(staged.Attachment, []path{p}); err != nil {
			return errors.Join(err, s.forget(ctx, []path{p}))
		}
		right = append(right, p)
	}
	if err := s.known(ctx, right); err != nil {
		return err
	}
	s.notifyMultipathd(ctx, have, right)
	_, err = s.joined(ctx, staged.Attachment, right)
	return err
}

// lacksPaths reports whether a volume's map has fewer paths than there are sessions. Without a map the volume is not staged yet.
func (s *Service) lacksPaths(a attachment.Attachment) (bool, error) {
	have, err := s.sessions(a.IQN)
	if err != nil {
		return false, err
	}
	found, err := s.find(a)
	return found != nil && len(found.paths) < len(loggedIn(have)), err
}
