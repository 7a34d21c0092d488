package node

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// ask asks a portal for the present portals of the target.
func (s *Service) ask(ctx context.Context, iqn, portal string, chap attachment.CHAP) []string {
	ctx, cancel := context.WithTimeout(ctx, discoveryBound)
	defer cancel()
	if chap.Own != nil {
		output, err := s.sendTargets(ctx, portal, chap)
		if err == nil {
			return portalsOf(output, iqn)
		}
		slog.WarnContext(ctx, "discovery with CHAP failed; trying without, as gateways of earlier releases have it", "portal", portal, "problem", err)
	}
	output, err := s.host.Run(ctx, iscsiadm("-m", "discovery", "-t", "sendtargets", "-p", portal, "-o", "nonpersistent"))
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "a portal does not answer", "portal", portal, "problem", err)
	}
	return portalsOf(output, iqn)
}

// sendTargets discovers with CHAP, which open-iscsi reads only from a discovery record. The record is deleted afterwards.
func (s *Service) sendTargets(ctx context.Context, portal string, chap attachment.CHAP) (output string, err error) {
	lock, _ := s.discoveries.LoadOrStore(portal, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	of := []string{"-m", "discoverydb", "-t", "sendtargets", "-p", portal}
	if _, err := s.host.Run(ctx, iscsiadm(append(slices.Clone(of), "-o", "new")...)); err != nil {
		return "", err
	}
	defer func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), discoveryBound)
		defer cancel()
		if _, err := s.host.Run(bound, iscsiadm(append(slices.Clone(of), "-o", "delete")...)); err != nil {
			slog.WarnContext(ctx, "a discovery record with a secret is left in open-iscsi's database", "portal", portal, "problem", err)
		}
	}()
	if _, err = s.host.Run(ctx, update(of, authentication("discovery.sendtargets.auth.", chap))); err == nil {
		output, err = s.host.Run(ctx, iscsiadm(append(slices.Clone(of), "-o", "nonpersistent", "--discover")...))
	}
	return output, err
}

// discover asks the portals concurrently; the first answer counts. If none answers, it returns the known portals.
func (s *Service) discover(ctx context.Context, a attachment.Attachment, chap attachment.CHAP) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan []string, len(a.Portals))
	for _, portal := range a.Portals {
		go func() { answers <- s.ask(ctx, a.IQN, portal, chap) }()
	}
	for range a.Portals {
		if portals := <-answers; len(portals) > 0 {
			s.portals.set(a.IQN, len(portals))
			return portals
		}
	}
	return a.Portals
}

// portalsOf reads lines as `10.0.0.1:3260,1 iqn.2026-11.dev.sluice:a`.
func portalsOf(output, iqn string) []string {
	var portals []string
	for line := range strings.Lines(output) {
		address, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		portal, _, tagged := strings.Cut(address, ",")
		if name == iqn && tagged && portal != "" && !slices.Contains(portals, portal) {
			portals = append(portals, portal)
		}
	}
	return portals
}
