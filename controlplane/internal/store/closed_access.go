package store

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of the events by which an upgrade reports access that it closes.
const (
	ReasonChapRequired       = "ChapRequired"
	ReasonDiscoveryAuthentic = "DiscoveryRequiresChap"
)

// accessReportKey exists from the moment at which a store gets its system id until the hosts of that moment are reported. Releases
// before system ids admitted hosts that this release refuses.
func (s *Store) accessReportKey() string { return s.prefix + "access-report" }

// reportClosedAccess stores an event on each host whose access this release closes, once for each store. A store that was made by
// this release has no host at that moment. Several replicas may report the same; the events say the same.
func (s *Store) reportClosedAccess(ctx context.Context) error {
	due, err := s.client.Get(ctx, s.accessReportKey())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(due.Kvs) == 0 {
		return nil
	}
	hosts, _, err := s.Hosts.All(ctx)
	if err != nil {
		return err
	}
	log := NewEventLog(s)
	for _, host := range hosts {
		for _, event := range closedAccess(host) {
			event.Severity, event.Object, event.Name = model.EventWarning, model.KindHost, host.Meta.Name
			if err := log.Record(ctx, event); err != nil {
				return err
			}
		}
	}
	if _, err := s.client.Delete(ctx, s.accessReportKey()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// closedAccess returns reason and message for access that an earlier release admitted and this one refuses.
func closedAccess(host *model.Host) []model.Event {
	if host.Spec.Chap == nil {
		return nil
	}
	events := []model.Event{{Reason: ReasonDiscoveryAuthentic, Message: "discovery sessions of this host must authenticate now: set its CHAP name " +
		"and secret for discovery, too (open-iscsi: discovery.sendtargets.auth.* in iscsid.conf)"}}
	if host.Spec.Chap.Username != "" {
		return events
	}
	var names []string
	for _, initiator := range host.Spec.Initiators {
		names = append(names, host.Spec.ChapUsername(initiator))
	}
	return append(events, model.Event{Reason: ReasonChapRequired, Message: "earlier releases admitted this host without authentication, because it has " +
		"a CHAP secret and no user name; it must authenticate now, with its secret and the CHAP name " + strings.Join(names, " or ")})
}
