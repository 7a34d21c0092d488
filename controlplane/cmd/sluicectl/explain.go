package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// link is one step of the way from a host to its disk.
type link struct {
	// text says what holds, as in `target db is exported by gw-1, gw-2`.
	text string
	// of are the objects whose findings break the link; any: it holds while one of them is usable.
	of  []*pb.ObjectReference
	any bool
	// but is a finding that a later link explains.
	but string
	// broken is why the link does not hold, "": only findings can tell; remedy is what to do.
	broken, remedy string
}

// brokenError makes `explain` exit with code 5 if a link is broken.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func explainCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "explain host|volume|target|gateway NAME", Args: cobra.ExactArgs(2),
		Short: "Check every link from a host to its disk, and show the first broken one",
		Long: "Check every link from a host to its disk: the host, its access, its sessions, the target, the gateways of its paths, the volumes, " +
			"their owners and their pools. Links that hold are printed until the first broken one, with its cause and its remedy. The exit " +
			"code is 5 if a link is broken.",
		ValidArgs: []string{"host", "volume", "target", "gateway"},
		RunE: func(command *cobra.Command, arguments []string) error {
			k := kindNamed(arguments[0])
			if k == nil || !slices.Contains(command.ValidArgs, k.name) {
				return usagef("%q cannot be explained: host, volume, target and gateway can", arguments[0])
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				object, err := k.get(ctx, connection, arguments[1])
				if err != nil {
					return err
				}
				w, err := survey(ctx, connection)
				if err != nil {
					return err
				}
				found, err := findingsOf(ctx, connection, &pb.ListFindingsRequest{EachObject: true})
				if err != nil {
					return err
				}
				return writeLinks(command.OutOrStdout(), w.links(object), found)
			})
		},
	}
}

// writeLinks prints the links until the first broken one, and returns that as an error.
func writeLinks(to io.Writer, links []link, found []*pb.Finding) error {
	for _, l := range links {
		broken, remedy := l.broken, l.remedy
		if broken == "" {
			broken, remedy = l.brokenBy(found)
		}
		if broken != "" {
			_, _ = fmt.Fprintf(to, "BROKEN  %s: %s\n        remedy: %s\n", l.text, broken, remedy)
			return &brokenError{l.text + ": " + broken}
		}
		_, _ = fmt.Fprintf(to, "ok      %s\n", l.text)
		for _, f := range found {
			if f.GetSeverity() == pb.FindingSeverity_FINDING_SEVERITY_WARNING && l.concerns(f) {
				_, _ = fmt.Fprintf(to, "        %s %s: %s: %s\n", severityWord(f.GetSeverity()), f.GetId(), subject(f), f.GetCause())
			}
		}
	}
	_, err := fmt.Fprintln(to, "every link holds")
	return err
}

func (l link) concerns(f *pb.Finding) bool {
	return slices.ContainsFunc(l.of, func(object *pb.ObjectReference) bool { return proto.Equal(object, f.GetObject()) })
}

// brokenBy returns the finding that breaks the link; empty: none.
func (l link) brokenBy(found []*pb.Finding) (cause, remedy string) {
	bad := map[string]*pb.Finding{}
	for _, f := range found {
		if f.GetSeverity() == pb.FindingSeverity_FINDING_SEVERITY_CRITICAL && f.GetId() != l.but && l.concerns(f) && bad[f.GetObject().GetName()] == nil {
			bad[f.GetObject().GetName()] = f
		}
	}
	if len(bad) == 0 || l.any && len(bad) < len(l.of) {
		return "", ""
	}
	for _, object := range l.of {
		if f := bad[object.GetName()]; f != nil {
			return fmt.Sprintf("%s: %s: %s", f.GetId(), objectText(f.GetObject()), f.GetCause()), f.GetRemedy() + "; " + f.GetLink()
		}
	}
	return "", ""
}

func reference(k, name string) *pb.ObjectReference { return &pb.ObjectReference{Kind: k, Name: name} }

func (w *clusterObjects) links(object proto.Message) []link {
	control := link{text: "the control plane decides, and its store takes changes", of: []*pb.ObjectReference{reference("ControlPlane", "")}}
	switch o := object.(type) {
	case *pb.Host:
		return append(w.hostLinks(o), control)
	case *pb.Target:
		return append(w.targetLinks(o, o.GetSpec().GetLuns()), control)
	case *pb.Volume:
		return append(w.volumeChain(o), control)
	case *pb.Gateway:
		return append(w.gatewayLinks(o), control)
	}
	return nil
}

func (w *clusterObjects) hostLinks(h *pb.Host) []link {
	name := h.GetMeta().GetName()
	links := []link{{text: "host " + name + " is known by " + strings.Join(h.GetSpec().GetInitiators(), ", "),
		of: []*pb.ObjectReference{reference("Host", name)}}}
	targets := slices.DeleteFunc(slices.Clone(w.targets), func(t *pb.Target) bool { return !slices.Contains(t.GetSpec().GetHosts(), name) })
	if len(targets) == 0 {
		return append(links, link{text: "host " + name + " may log in to a target", broken: "no target permits it",
			remedy: "add it to a target: `sluicectl target add-host`"})
	}
	for _, t := range targets {
		links = append(links, w.sessionLink(h, t))
		links = append(links, w.targetLinks(t, t.GetSpec().GetLuns())...)
	}
	return links
}

// sessionLink is that a host is logged in to a target. A host that is not there is no fault of the target.
func (w *clusterObjects) sessionLink(h *pb.Host, t *pb.Target) link {
	host, target := h.GetMeta().GetName(), t.GetMeta().GetName()
	count := 0
	for _, s := range w.sessions {
		if s.GetStatus().GetHost() == host && s.GetStatus().GetTarget() == target {
			count++
		}
	}
	l := link{text: fmt.Sprintf("host %s has %d sessions to target %s", host, count, target)}
	if count == 0 {
		l.broken = "it is not logged in"
		l.remedy = "run the script that `sluicectl host-config " + host + "` prints on the host; `sluicectl events --name " + host + "` shows refused logins"
	}
	return l
}

// targetLinks are the links from a target to the disks of these LUNs.
func (w *clusterObjects) targetLinks(t *pb.Target, luns []*pb.TargetLun) []link {
	name := t.GetMeta().GetName()
	exported := link{text: "target " + name + " is exported", of: []*pb.ObjectReference{reference("Target", name)}, but: "TargetLunsUnusable"}
	gateways := link{text: "a gateway of its paths serves", any: true}
	var names []string
	for _, path := range t.GetStatus().GetPaths() {
		names = append(names, path.GetGateway())
		gateways.of = append(gateways.of, reference("Gateway", path.GetGateway()))
	}
	switch serving := w.servingGateways(names); {
	case len(names) == 0:
		exported.broken, exported.remedy = "no gateway exports it", "add gateways to pool "+t.GetSpec().GetGatewayPool()
	case len(serving) == 0:
		gateways.broken, gateways.remedy = "none of "+strings.Join(names, ", ")+" serves", "start them: `sluicectl gateway list`"
	default:
		exported.text += " by " + strings.Join(names, ", ")
		gateways.text = "of its paths serve: " + strings.Join(serving, ", ")
	}
	links := []link{exported, gateways}
	if len(luns) == 0 {
		return append(links, link{text: "target " + name + " has a LUN", broken: "it has none", remedy: "map a volume: `sluicectl target add-lun`"})
	}
	for _, lun := range luns {
		for _, v := range w.volumes {
			if v.GetMeta().GetName() == lun.GetVolume() {
				links = append(links, w.diskLinks(v, fmt.Sprintf("LUN %d: ", lun.GetId()))...)
			}
		}
	}
	return links
}

// servingGateways returns those of the named gateways that serve. A gateway without a stream continues to serve (DESIGN R3).
func (w *clusterObjects) servingGateways(names []string) []string {
	serve := []pb.GatewayHealth{pb.GatewayHealth_GATEWAY_HEALTH_READY, pb.GatewayHealth_GATEWAY_HEALTH_DRAINING,
		pb.GatewayHealth_GATEWAY_HEALTH_DISCONNECTED}
	var serving []string
	for _, g := range w.gateways {
		if slices.Contains(names, g.GetMeta().GetName()) && slices.Contains(serve, g.GetStatus().GetHealth()) {
			serving = append(serving, g.GetMeta().GetName())
		}
	}
	return serving
}

// volumeChain has the links from the hosts of a volume's target to its disk.
func (w *clusterObjects) volumeChain(v *pb.Volume) []link {
	name := v.GetMeta().GetName()
	for _, t := range w.targets {
		at := slices.IndexFunc(t.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool { return lun.GetVolume() == name })
		if at < 0 {
			continue
		}
		links := []link{{text: fmt.Sprintf("volume %s is LUN %d of target %s", name, t.GetSpec().GetLuns()[at].GetId(), t.GetMeta().GetName())}}
		if len(t.GetSpec().GetHosts()) == 0 {
			links = append(links, link{text: "target " + t.GetMeta().GetName() + " permits a host", broken: "it permits none",
				remedy: "add its hosts: `sluicectl target add-host`"})
		}
		links = append(links, w.targetLinks(t, t.GetSpec().GetLuns()[at:at+1])...)
		for _, h := range w.hosts { // last: without a host the rest can hold
			if slices.Contains(t.GetSpec().GetHosts(), h.GetMeta().GetName()) {
				links = append(links, w.sessionLink(h, t))
			}
		}
		return links
	}
	return append(w.diskLinks(v, ""), link{text: "volume " + name + " is a LUN", broken: "no target maps it",
		remedy: "map it: `sluicectl target create` with --lun, or `sluicectl target add-lun`"})
}

// diskLinks are the links from a volume to its disk.
func (w *clusterObjects) diskLinks(v *pb.Volume, lun string) []link {
	name, status, pool := v.GetMeta().GetName(), v.GetStatus(), v.GetSpec().GetPool()
	made := link{text: fmt.Sprintf("%svolume %s has %s", lun, name, orDash(size(status.GetCapacityBytes()))),
		of: []*pb.ObjectReference{reference("Volume", name)}}
	if status.GetCapacityBytes() <= 0 {
		made.broken, made.remedy = "its data has not been made"+troubles(v), "`sluicectl volume describe "+name+"` shows what it waits for"
	}
	storage := link{text: "pool " + pool + " is reached by gateways", of: []*pb.ObjectReference{reference("StoragePool", pool)}}
	owner := link{text: fmt.Sprintf("gateway %s owns it", ownerName(status)), of: []*pb.ObjectReference{reference("Gateway", ownerName(status))}}
	if state := status.GetOwnership(); state != pb.OwnershipState_OWNERSHIP_STATE_OWNED && state != pb.OwnershipState_OWNERSHIP_STATE_MOVING {
		owner = link{text: "a gateway owns volume " + name, broken: "its ownership is " + ownershipWord(status) + troubles(v),
			remedy: "`sluicectl gateway list` shows the gateways that could own it"}
	}
	if lun == "" { // no target maps it, so it needs no owner
		return []link{storage, made}
	}
	return []link{storage, made, owner}
}

func (w *clusterObjects) gatewayLinks(gateway *pb.Gateway) []link {
	name := gateway.GetMeta().GetName()
	self := link{text: "gateway " + name + " serves", of: []*pb.ObjectReference{reference("Gateway", name)}}
	if health := gateway.GetStatus().GetHealth(); len(w.servingGateways([]string{name})) == 0 {
		self.broken = "its health is " + word(health, "GATEWAY_HEALTH_") + troubles(gateway)
		self.remedy = "look at node " + gateway.GetSpec().GetNode() + "; `sluicectl doctor` names the remedy"
	}
	links := []link{self}
	for _, v := range w.volumes {
		if ownerName(v.GetStatus()) == name {
			links = append(links, w.diskLinks(v, "it owns ")...)
		}
	}
	return links
}
