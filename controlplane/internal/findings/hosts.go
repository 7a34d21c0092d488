package findings

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *survey) host(h *model.Host) {
	if h.Spec.Chap == nil {
		s.add(ruleUnauthenticated, of(h), "may log in without authentication",
			"give it CHAP: `sluicectl apply` with spec.chap, then the same name and secret on the host", time.Time{})
	}
	for _, attached := range h.Spec.Switches {
		s.knownSwitch(h, attached)
	}
	s.deletion(h)
}

// hostFaults finds what hosts met at gateways within the last model.HostFaultShownFor. A fault of an initiator that no host has is one
// of the gateway, and only advice: any program on the network can cause it.
func (s *survey) hostFaults() {
	for _, report := range s.system.HostFaults {
		gateway := s.GatewayByNumber(report.Gateway.Number)
		if gateway == nil {
			continue
		}
		for i := range report.Faults {
			if fault := &report.Faults[i]; fault.PresentAt(s.system.Time) && !s.loggedInSince(report.Gateway.Number, fault) {
				s.hostFault(gateway, fault)
			}
		}
	}
}

// loggedInSince reports whether the initiator has a session from the same address that ends a fault: it logged in after the fault, or its
// path came back. A report is at most model.HostFaultReportedEvery older than its faults, so a login in that time may have been the later.
func (s *survey) loggedInSince(gateway uint32, f *model.HostFault) bool {
	if f.Kind == model.HostDigestError {
		return false
	}
	return slices.ContainsFunc(s.system.Sessions, func(session *model.Session) bool {
		address, _, err := net.SplitHostPort(session.InitiatorAddress)
		return err == nil && address == f.Address && session.GatewayNumber == gateway && session.Initiator == f.Initiator &&
			(f.TargetIQN == "" || session.TargetIQN == f.TargetIQN) && session.LoginTime.After(f.Last.Add(-model.HostFaultReportedEvery))
	})
}

func (s *survey) hostFault(gateway *model.Gateway, f *model.HostFault) {
	host := s.HostByInitiator(f.Initiator)
	ref, details := of(gateway), []detail{asOnly(Advice)}
	where := ""
	if host != nil {
		ref, details = of(host), nil
		where = "at gateway " + gateway.Meta.Name + ", "
	} else if f.Initiator != "" {
		where = "initiator " + f.Initiator + ", which no host has, "
	}
	where += s.targetOf(f) + "from " + f.Address
	reason := ""
	if f.Reason != "" {
		reason = ": " + f.Reason
	}
	stranger := ""
	if host == nil {
		stranger = "add the initiator to a host, or find out which program logs in from that address; otherwise: "
	}
	switch f.Kind {
	case model.HostLoginRefused:
		s.add(ruleHostLoginRefused, ref, "logins are refused ("+where+")"+reason, stranger+refusalRemedy(f.Reason), f.First, details...)
	case model.HostAuthenticationFailed:
		s.add(ruleHostAuthentication, ref, "logins fail to authenticate ("+where+")"+reason,
			stranger+"compare the CHAP name and secret of the host with spec.chap and spec.mutualChap of its Host object", f.First, details...)
	case model.HostPingLost:
		s.add(ruleHostPingsLost, ref, "pings are not answered ("+where+")"+reason,
			"look at the load of the host, and at the network between that address and the gateway's portal: lost packets, MTU", f.First, details...)
	case model.HostDigestError:
		s.add(ruleHostDigestErrors, ref, "digests are wrong ("+where+")"+reason,
			"replace what damages the data between that address and the gateway's portal: network card, cable, switch, or their offloads", f.First,
			details...)
	}
}

func (s *survey) targetOf(f *model.HostFault) string {
	if f.TargetIQN == "" {
		return ""
	}
	if target := s.TargetByIQN(f.TargetIQN); target != nil {
		return "target " + target.Meta.Name + ", "
	}
	return "target " + f.TargetIQN + ", "
}

// refusalRemedy returns the remedy of a refused login by its status (RFC 7143 §11.13.5).
func refusalRemedy(reason string) string {
	status, _, _ := strings.Cut(strings.TrimPrefix(reason, "status "), ":")
	switch status {
	case "0202", "0203", "0204":
		return "name the host in spec.hosts of the target, correct the target's name on the host, or log in at a gateway that exports the target"
	case "0302":
		return "end sessions that are not needed, or raise spec.maxSessions of the host or spec.maxSessionsPerGateway of the gateway pool"
	case "020a":
		return "the session has ended: the host must log in again, with TSIH 0; restart the initiator if it does not"
	}
	return "the message names what the gateway does not accept: correct the settings of the initiator"
}

// portal is a portal group of a gateway: one fabric (RFC 7143 §4.2.7).
type portal struct{ gateway, tag uint32 }

// pathKey is a host with a target.
type pathKey struct{ host, target string }

// hostPaths finds hosts that use only some of their paths to a target, or portals on other fabrics than their own. A host without a
// session to a target has no finding about it.
func (s *survey) hostPaths() {
	sessions := map[pathKey]map[portal]bool{}
	for _, session := range s.system.Sessions {
		host, target := s.HostByUID(session.HostUID), s.TargetByIQN(session.TargetIQN)
		if host == nil {
			host = s.HostByInitiator(session.Initiator)
		}
		if host == nil || target == nil || target.Meta.Deleting() || !slices.Contains(target.Spec.Hosts, host.Meta.Name) {
			continue
		}
		key := pathKey{host.Meta.Name, target.Meta.Name}
		if sessions[key] == nil {
			sessions[key] = map[portal]bool{}
		}
		sessions[key][portal{session.GatewayNumber, session.PortalGroupTag}] = true
	}
	missing, wrong := map[string][]string{}, map[string][]string{}
	for key, used := range sessions {
		shown := map[portal]string{} // with its fabric
		for _, p := range s.Access(s.Targets[key.target])[key.host] {
			if g := s.GatewayByNumber(p.Gateway); g != nil && serving(g) {
				shown[portal{p.Gateway, p.PortalGroupTag}] = p.Fabric
			}
		}
		host := s.Hosts[key.host]
		for _, text := range s.missingPaths(host, used, shown) {
			missing[key.host] = append(missing[key.host], "target "+key.target+" "+text)
		}
		for _, text := range s.wrongPaths(host, used, shown) {
			wrong[key.host] = append(wrong[key.host], "target "+key.target+" "+text)
		}
	}
	for name, texts := range missing {
		s.add(ruleHostPathMissing, Ref{model.KindHost, name}, "has sessions on some of its paths only; none to "+fewOf(texts),
			"log in at the missing portals: `sluicectl host-config "+name+"` prints the script; look at the network and the log of the host", time.Time{},
			settles(pathSettles))
	}
	for name, texts := range wrong {
		s.add(ruleHostWrongFabric, Ref{model.KindHost, name}, "uses portals on fabrics that are not its own: "+fewOf(texts),
			"log in at the portals that `sluicectl host-config "+name+"` names, or correct spec.switches of the host", time.Time{},
			settles(pathSettles))
	}
}

// missingPaths returns the shown portals at which a host has no session, in words. A host that names no switch may be attached to some
// fabrics only: it needs one portal of each gateway.
func (s *survey) missingPaths(host *model.Host, used map[portal]bool, shown map[portal]string) []string {
	gateways := map[uint32]bool{}
	for p := range used {
		gateways[p.gateway] = true
	}
	var texts []string
	for p, fabric := range shown {
		name := s.GatewayName(p.gateway)
		switch {
		case len(host.Spec.Switches) == 0 && !gateways[p.gateway]:
			texts = append(texts, "at gateway "+name)
		case len(host.Spec.Switches) > 0 && !used[p]:
			texts = append(texts, "at gateway "+name+", fabric "+fabric)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// wrongPaths returns the used portals of gateways that have a portal on a fabric of the host as well, in words.
func (s *survey) wrongPaths(host *model.Host, used map[portal]bool, shown map[portal]string) []string {
	attached := func(fabric string) bool {
		return slices.ContainsFunc(host.Spec.Switches, func(place string) bool { return strings.HasPrefix(place, fabric+"/") })
	}
	own := map[uint32]bool{} // gateways with a portal on a fabric of the host
	for p, fabric := range shown {
		own[p.gateway] = own[p.gateway] || attached(fabric)
	}
	var texts []string
	for p := range used {
		gateway := s.GatewayByNumber(p.gateway)
		if gateway == nil || !own[p.gateway] {
			continue
		}
		for fabric, tag := range gateway.Status.PortalGroupTags {
			if tag == p.tag && !attached(fabric) {
				texts = append(texts, "at gateway "+gateway.Meta.Name+", fabric "+fabric)
			}
		}
	}
	slices.Sort(texts)
	return texts
}

// fewOf returns the first texts in order, and the count of the others.
func fewOf(texts []string) string {
	const most = 3
	slices.SortFunc(texts, cmp.Compare[string])
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return strings.Join(texts[:most], "; ") + "; and others"
}
