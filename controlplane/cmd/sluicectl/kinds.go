package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// kind is one kind of objects on the command line.
type kind struct {
	// name and aliases are typed by users.
	name    string
	aliases []string
	// message and messages are the kind's names in the API, field and fields those in its messages.
	message, messages, field, fields string
	columns                          []column
	// create adds flags to a command, and returns a function that makes an object from them; nil if users do not create such
	// objects.
	create func(*cobra.Command) func(*pb.ObjectMeta) (proto.Message, error)
	// observed objects appear and disappear by themselves: users do not create, update, delete or label them.
	observed bool
	// refers has, for flags of the kind's commands, the kind of object that they name, for completion.
	refers map[string]string
	// arguments has, for commands of the kind, the kind of object that the arguments after the first one name, for completion; empty:
	// they name no object.
	arguments map[string]string
	// filter adds flags to list, and returns a function that selects objects; nil if there are no filters except labels.
	filter func(*cobra.Command) func(proto.Message) bool
	// ready returns what the column READY shows of an object without a critical finding; nil: its condition Ready.
	ready func(proto.Message) string
	// unmade returns what a new object still lacks before it can be used, "": nothing; nil if it can be used at once.
	unmade func(proto.Message) string
	// refused returns why a new object will never be usable, "": it may be; nil if that cannot be determined.
	refused func(proto.Message) string
	// unset returns what an object still lacks before a change of its spec has its effect, "": nothing; nil if that is not observed.
	unset func(proto.Message) string
	// apart are flags of create whose fields other commands of the kind change, so that set does not have them.
	apart []string
	// uses returns what uses an object that the control plane would delete nevertheless, as text; nil: the control plane refuses to
	// delete an object in use.
	uses func(proto.Message, []*pb.Session) []string
	// needs returns what other objects a new one needs before hosts can use it; nil: none.
	needs func(context.Context, *grpc.ClientConn, proto.Message) ([]goal, error)
	// replaced returns the later request of another user that prevents the use of a new object (goal).
	replaced func(from, now proto.Message) string
	// more are commands that only this kind has.
	more []func(*kind, *globals) *cobra.Command
}

// column of a table; wide ones are shown with -o wide.
type column struct {
	title string
	wide  bool
	value func(proto.Message) string
}

// of returns a column from a function of the kind's own type.
func of[M proto.Message](title string, value func(M) string) column {
	return column{title: title, value: func(m proto.Message) string { return value(m.(M)) }}
}

func wide[M proto.Message](title string, value func(M) string) column {
	c := of(title, value)
	c.wide = true
	return c
}

var volumeKind = &kind{
	name: "volume", aliases: []string{"volumes", "vol"},
	message: "Volume", messages: "Volumes", field: "volume", fields: "volumes", create: createVolume,
	refers: map[string]string{"pool": "pool", "from-snapshot": "snapshot", "from-volume": "volume",
		"to": "gateway"},
	unmade: unmadeVolume, refused: unsupported, unset: unsetVolume,
	more: []func(*kind, *globals) *cobra.Command{resizeVolume, moveVolume},
	columns: []column{
		of("POOL", func(v *pb.Volume) string { return v.GetSpec().GetPool() }),
		of("SIZE", func(v *pb.Volume) string { return size(v.GetSpec().GetSizeBytes()) }),
		of("OWNERSHIP", func(v *pb.Volume) string { return word(v.GetStatus().GetOwnership(), "OWNERSHIP_STATE_") }),
		of("OWNER", func(v *pb.Volume) string { return ownerName(v.GetStatus()) }),
		wide("EPOCH", func(v *pb.Volume) string { return strconv.FormatUint(v.GetStatus().GetEpoch(), 10) }),
		wide("NAA", func(v *pb.Volume) string { return v.GetStatus().GetNaa() }),
		wide("WRITE-CACHE", func(v *pb.Volume) string { return word(v.GetSpec().GetWriteCache(), "WRITE_CACHE_") }),
	},
}

var kinds = []*kind{
	volumeKind,
	{
		name: "target", aliases: []string{"targets", "tgt"},
		message: "Target", messages: "Targets", field: "target", fields: "targets", create: createTarget,
		refers: map[string]string{"gateway-pool": "gatewaypool", "host": "host"}, unmade: unmadeTarget, needs: volumesOfTarget,
		uses:  bySessions((*pb.SessionStatus).GetTarget),
		unset: unappliedTarget, apart: []string{"lun", "host"},
		arguments: map[string]string{"add-host": "host", "remove-host": "host", "add-lun": "", "remove-lun": ""},
		more:      []func(*kind, *globals) *cobra.Command{addLun, removeLun, addHost, removeHost},
		columns: []column{
			of("IQN", func(t *pb.Target) string { return t.GetSpec().GetIqn() }),
			of("LUNS", func(t *pb.Target) string { return strconv.Itoa(len(t.GetSpec().GetLuns())) }),
			of("HOSTS", func(t *pb.Target) string { return strconv.Itoa(len(t.GetSpec().GetHosts())) }),
			of("PATHS", func(t *pb.Target) string {
				return fmt.Sprintf("%d/%d", len(t.GetStatus().GetPaths()), t.GetSpec().GetPaths())
			}),
			wide("GATEWAY-POOL", func(t *pb.Target) string { return t.GetSpec().GetGatewayPool() }),
		},
	},
	{
		name: "host", aliases: []string{"hosts"},
		message: "Host", messages: "Hosts", field: "host", fields: "hosts", create: createHost, uses: bySessions((*pb.SessionStatus).GetHost),
		apart: []string{"chap-user", "chap-secret-file", "mutual-chap-user", "mutual-chap-secret-file"},
		more:  []func(*kind, *globals) *cobra.Command{setChap}, arguments: map[string]string{"set-chap": ""},
		columns: []column{
			of("INITIATORS", func(h *pb.Host) string { return strings.Join(h.GetSpec().GetInitiators(), ",") }),
			of("CHAP", func(h *pb.Host) string { return chapWord(h.GetSpec()) }),
			of("SESSIONS", func(h *pb.Host) string { return strconv.Itoa(int(h.GetStatus().GetSessions())) }),
			wide("SWITCHES", func(h *pb.Host) string { return strings.Join(h.GetSpec().GetSwitches(), ",") }),
		},
	},
	{
		name: "snapshot", aliases: []string{"snapshots", "snap"},
		message: "Snapshot", messages: "Snapshots", field: "snapshot", fields: "snapshots", create: createSnapshot,
		refers: map[string]string{"volume": "volume"}, unmade: unmadeSnapshot, refused: unsupported,
		more: []func(*kind, *globals) *cobra.Command{rollBackSnapshot},
		columns: []column{
			of("VOLUME", func(s *pb.Snapshot) string { return s.GetSpec().GetVolume() }),
			of("SIZE", func(s *pb.Snapshot) string { return size(s.GetStatus().GetSizeBytes()) }),
		},
	},
	{
		name: "pool", aliases: []string{"pools", "storagepool", "sp"},
		message: "StoragePool", messages: "StoragePools", field: "storage_pool", fields: "storage_pools", create: createPool,
		unmade: unmadePool, more: []func(*kind, *globals) *cobra.Command{adoptPool},
		columns: []column{
			of("KIND", poolKind),
			of("PLACE", poolLocation),
			of("USED", func(p *pb.StoragePool) string { return size(p.GetStatus().GetUsedBytes()) }),
			of("CAPACITY", func(p *pb.StoragePool) string { return size(p.GetStatus().GetCapacityBytes()) }),
			wide("ORPHANED-IMAGES", func(p *pb.StoragePool) string {
				return strconv.Itoa(int(p.GetStatus().GetOrphanedImageCount()))
			}),
			wide("MISSING-IMAGES", func(p *pb.StoragePool) string {
				return strconv.Itoa(int(p.GetStatus().GetMissingImageCount()))
			}),
		},
	},
	{
		name: "gateway", aliases: []string{"gateways", "gw"},
		message: "Gateway", messages: "Gateways", field: "gateway", fields: "gateways", create: createGateway,
		refers: map[string]string{"pool": "gatewaypool"}, unmade: unmadeGateway, replaced: drainedOrNot, uses: byVolumes,
		more: []func(*kind, *globals) *cobra.Command{drainGateway, undrainGateway, rotateKeys},
		columns: []column{
			of("NUMBER", func(g *pb.Gateway) string { return number(g.GetStatus().GetNumber()) }),
			of("NODE", func(g *pb.Gateway) string { return g.GetSpec().GetNode() }),
			of("HEALTH", func(g *pb.Gateway) string { return word(g.GetStatus().GetHealth(), "GATEWAY_HEALTH_") }),
			of("PORTALS", gatewayPortals),
			of("SESSIONS", func(g *pb.Gateway) string { return strconv.Itoa(int(g.GetStatus().GetSessions())) }),
			of("OWNS", func(g *pb.Gateway) string { return strconv.Itoa(int(g.GetStatus().GetVolumesOwned())) }),
			wide("POOL", func(g *pb.Gateway) string { return g.GetSpec().GetGatewayPool() }),
			wide("VERSION", func(g *pb.Gateway) string { return g.GetStatus().GetVersion() }),
		},
	},
	{
		name: "gatewaypool", aliases: []string{"gatewaypools", "gwp"},
		message: "GatewayPool", messages: "GatewayPools", field: "gateway_pool", fields: "gateway_pools",
		create: createGatewayPool, refers: map[string]string{"fabric": "fabric"}, ready: gatewayPoolReady,
		columns: []column{
			of("FABRICS", func(p *pb.GatewayPool) string { return strings.Join(p.GetSpec().GetFabrics(), ",") }),
			of("GATEWAYS-READY", func(p *pb.GatewayPool) string {
				return fmt.Sprintf("%d/%d", p.GetStatus().GetGatewaysReady(), p.GetStatus().GetGateways())
			}),
		},
	},
	{
		name: "fabric", aliases: []string{"fabrics"},
		message: "Fabric", messages: "Fabrics", field: "fabric", fields: "fabrics", create: createFabric,
		columns: []column{
			of("SUBNETS", func(f *pb.Fabric) string { return strings.Join(f.GetSpec().GetSubnets(), ",") }),
			of("SWITCHES", func(f *pb.Fabric) string { return strconv.Itoa(len(f.GetSpec().GetSwitches())) }),
			of("LINKS", func(f *pb.Fabric) string { return strconv.Itoa(len(f.GetSpec().GetLinks())) }),
		},
	},
	sessionKind,
}

// kindNamed finds a kind by the name that users type or by its name in the API; nil: none.
func kindNamed(name string) *kind {
	for _, k := range kinds {
		if k.name == name || k.message == name || slices.Contains(k.aliases, name) {
			return k
		}
	}
	return nil
}

// word returns an enum's value as users know it: without the prefix, in CamelCase.
func word(value fmt.Stringer, prefix string) string {
	var shown strings.Builder
	for _, part := range strings.Split(strings.TrimPrefix(value.String(), prefix), "_") {
		if part != "" && part != "UNSPECIFIED" {
			shown.WriteString(part[:1] + strings.ToLower(part[1:]))
		}
	}
	return orDash(shown.String())
}

func size(bytes int64) string {
	if bytes <= 0 {
		return "-"
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

func number(n uint32) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(n), 10)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func chapWord(spec *pb.HostSpec) string {
	switch {
	case spec.GetMutualChap() != nil:
		return "mutual"
	case spec.GetChap() != nil:
		return "one-way"
	}
	return "none"
}

// gatewayPoolReady: a gateway pool without a ready gateway exports nothing.
func gatewayPoolReady(object proto.Message) string {
	if pool, _ := object.(*pb.GatewayPool); pool.GetStatus().GetGatewaysReady() == 0 {
		return "False"
	}
	return "True"
}

func poolKind(p *pb.StoragePool) string {
	if p.GetSpec().GetRbd() != nil {
		return "rbd"
	}
	return "local"
}

func poolLocation(p *pb.StoragePool) string {
	if rbd := p.GetSpec().GetRbd(); rbd != nil {
		return strings.Trim(rbd.GetPool()+"/"+rbd.GetRadosNamespace(), "/")
	}
	local := p.GetSpec().GetLocal()
	place := local.GetDirectory()
	if place == "" {
		place = fmt.Sprintf("%d devices", len(local.GetDevices()))
	}
	return local.GetNode() + ":" + place
}

func gatewayPortals(g *pb.Gateway) string {
	var portals []string
	for _, portal := range g.GetSpec().GetPortals() {
		portals = append(portals, portal.GetAdvertised())
	}
	return strings.Join(portals, ",")
}

// age returns how long ago an object was created, in the format of kubectl.
func age(meta *pb.ObjectMeta, now time.Time) string {
	if meta.GetCreateTime() == nil {
		return "-"
	}
	past := now.Sub(meta.GetCreateTime().AsTime())
	switch {
	case past >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(past.Hours()/24))
	case past >= 2*time.Hour:
		return fmt.Sprintf("%dh", int(past.Hours()))
	case past >= 2*time.Minute:
		return fmt.Sprintf("%dm", int(past.Minutes()))
	}
	return fmt.Sprintf("%ds", int(max(past, 0).Seconds()))
}
