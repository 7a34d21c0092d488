package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/hostconfig"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// diskOrder is a disk for a host, as the flags describe it: a volume, a target that maps it, and the host.
type diskOrder struct {
	name       string
	size       int64
	pool       string
	target     string
	host       string
	initiators []string
	open       bool // without CHAP
	chap       *chapFlags
	system     string
	wait       bool
}

func diskCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "disk", Short: "Give a disk to a host in one step", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(createDisk(g))
	return command
}

func createDisk(g *globals) *cobra.Command {
	order := &diskOrder{chap: &chapFlags{name: "chap"}}
	command := &cobra.Command{
		Use: "create NAME SIZE --host HOST", Short: "Create a volume, its target and its host, and print the script for the host",
		Args: cobra.ExactArgs(2),
		Long: "Create a volume and a target of that name, permit a host to log in, and print the script that connects the host (`host-config`).\n" +
			"A host that does not exist is created, with a new CHAP secret, which the script has. An object that exists already stays as it\n" +
			"is, so the command can be repeated. Messages go to standard error, and the script to standard output.",
		RunE: func(command *cobra.Command, arguments []string) error {
			var err error
			order.name = arguments[0]
			if order.size, err = readSize("SIZE", arguments[1]); err != nil {
				return err
			}
			if !slices.Contains(hostconfig.Systems(), order.system) {
				return usagef("--os %q: use one of %s", order.system, strings.Join(hostconfig.Systems(), ", "))
			}
			secret, err := order.chap.secret(command)
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				return order.run(ctx, &diskMaking{g: g, command: command, connection: connection}, secret)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&order.host, "host", "", "the host that gets the disk")
	flags.StringSliceVar(&order.initiators, "initiator", nil, "iSCSI names of a host that does not exist yet (/etc/iscsi/initiatorname.iscsi)")
	flags.StringVar(&order.pool, "pool", "", "storage pool of the volume; empty: the only pool")
	flags.StringVar(&order.target, "target", "", "target that maps the volume; empty: one of the disk's name")
	flags.BoolVar(&order.open, "allow-unauthenticated", false, "create the host without CHAP: logins by the initiator's name alone")
	flags.StringVar(&order.chap.secretFile, "chap-secret-file", "", "file that holds the CHAP secret of the host; - for standard input; "+
		"empty: a new secret for a new host")
	flags.StringVar(&order.system, "os", "debian", "operating system of the host: "+strings.Join(hostconfig.Systems(), ", "))
	addWait(command, &order.wait, "wait until the host can use the disk, and print the script")
	byDefault(command, "wait")
	command.MarkFlagsMutuallyExclusive("allow-unauthenticated", "chap-secret-file")
	required(command, "host")
	for flag, noun := range map[string]string{"host": "host", "pool": "pool", "target": "target"} {
		_ = command.RegisterFlagCompletionFunc(flag, kindNamed(noun).completeNames(g)) // the flag exists
	}
	return command
}

// byDefault makes a boolean flag true unless it is given.
func byDefault(command *cobra.Command, name string) {
	flag := command.Flags().Lookup(name)
	flag.DefValue = "true"
	_ = flag.Value.Set(flag.DefValue) // a boolean
}

// diskMaking is the connection by which the objects of an order are made.
type diskMaking struct {
	g          *globals
	command    *cobra.Command
	connection *grpc.ClientConn
}

// say reports what became of an object, on standard error.
func (m *diskMaking) say(k *kind, object proto.Message, what string) {
	_, _ = fmt.Fprintln(m.command.ErrOrStderr(), k.changeText(object, what, false))
}

// diskPart is an object that a disk needs.
type diskPart struct {
	kind   *kind
	object proto.Message
	// fits returns why an object that exists is not what is wanted.
	fits func(proto.Message) error
	// made: the object did not exist.
	made bool
}

// find reads the object, if it exists. Errors: it is not what is wanted.
func (p *diskPart) find(ctx context.Context, m *diskMaking) (bool, error) {
	name := metaOf(p.object).GetName()
	have, err := p.kind.get(ctx, m.connection, name)
	switch {
	case client.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, p.kind.about(name, err)
	}
	p.object = have
	return true, p.fits(have)
}

// create creates the object.
func (p *diskPart) create(ctx context.Context, m *diskMaking) error {
	response, err := p.kind.call(ctx, m.connection, "Create", p.kind.message, map[string]any{p.kind.field: p.object})
	if err != nil {
		return p.kind.about(metaOf(p.object).GetName(), err)
	}
	p.object, p.made = p.kind.objectIn(response), true
	m.say(p.kind, p.object, "created")
	return nil
}

func (o *diskOrder) run(ctx context.Context, m *diskMaking, secret string) error {
	generated := ""
	if secret == "" && !o.open {
		generated = generateSecret()
	}
	volume, err := o.volume(ctx, m)
	if err != nil {
		return err
	}
	host := o.hostPart(secret + generated)
	target := o.targetPart()
	// All are checked before the first is created.
	var missing []*diskPart
	for _, part := range []*diskPart{host, volume, target} {
		exists, err := part.find(ctx, m)
		if err != nil {
			return err
		}
		if !exists {
			missing = append(missing, part)
		}
	}
	if len(o.initiators) == 0 && slices.Contains(missing, host) {
		return usagef("host %s does not exist yet: give its iSCSI name by --initiator", o.host)
	}
	for _, part := range missing {
		if err := part.create(ctx, m); err != nil {
			return err
		}
	}
	if err := o.fill(ctx, m, target); err != nil || !o.wait {
		return err
	}
	if host.made {
		secret += generated
	}
	setup, err := hostSetup(ctx, m.connection, o.host, secret, "")
	if err != nil {
		return err
	}
	return hostconfig.Write(m.command.OutOrStdout(), o.system, hostconfig.Script, setup)
}

func (o *diskOrder) hostPart(secret string) *diskPart {
	spec := &pb.HostSpec{Initiators: o.initiators, AllowUnauthenticated: o.open}
	if !o.open {
		spec.Chap = &pb.ChapCredentials{Password: secret}
	}
	return &diskPart{kind: kindNamed("host"), object: &pb.Host{Meta: &pb.ObjectMeta{Name: o.host}, Spec: spec}, fits: func(have proto.Message) error {
		known := have.(*pb.Host).GetSpec().GetInitiators()
		for _, initiator := range o.initiators {
			if !slices.Contains(known, initiator) {
				return status.Errorf(codes.FailedPrecondition, "host %s is known as %s, not as %s; `sluicectl host set %s --initiator` changes that",
					o.host, strings.Join(known, ", "), initiator, o.host)
			}
		}
		return nil
	}}
}

// volume chooses the pool, if none is given and there is only one.
func (o *diskOrder) volume(ctx context.Context, m *diskMaking) (*diskPart, error) {
	pool := o.pool
	if pool == "" {
		pools, err := kindNamed("pool").list(ctx, m.connection, nil)
		if err != nil {
			return nil, err
		}
		if len(pools) != 1 {
			return nil, usagef("there are %d pools: choose one by --pool (`sluicectl pool list`)", len(pools))
		}
		pool = metaOf(pools[0]).GetName()
	}
	wanted := &pb.Volume{Meta: &pb.ObjectMeta{Name: o.name}, Spec: &pb.VolumeSpec{Pool: pool, SizeBytes: o.size,
		WriteCache: pb.WriteCache_WRITE_CACHE_DISABLED, ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_DELETE}}
	return &diskPart{kind: volumeKind, object: wanted, fits: func(have proto.Message) error {
		spec := have.(*pb.Volume).GetSpec()
		switch {
		case spec.GetPool() != pool:
			return status.Errorf(codes.FailedPrecondition, "volume %s is in pool %s, not in %s: give the disk another name", o.name, spec.GetPool(), pool)
		case spec.GetSizeBytes() != o.size:
			return status.Errorf(codes.FailedPrecondition, "volume %s has %s, not %s: `sluicectl volume resize %s --size`", o.name,
				size(spec.GetSizeBytes()), size(o.size), o.name)
		}
		return nil
	}}, nil
}

func (o *diskOrder) targetPart() *diskPart {
	return &diskPart{kind: kindNamed("target"), object: &pb.Target{Meta: &pb.ObjectMeta{Name: cmp.Or(o.target, o.name)},
		Spec: &pb.TargetSpec{GatewayPool: "default", Paths: 2, Hosts: []string{o.host}, Luns: []*pb.TargetLun{{Volume: o.name}}}},
		fits: func(proto.Message) error { return nil }}
}

// fill maps the volume in a target that existed, permits the host there, and waits until the host can use both.
func (o *diskOrder) fill(ctx context.Context, m *diskMaking, target *diskPart) error {
	k, name := target.kind, metaOf(target.object).GetName()
	object, changes, err := k.modify(ctx, m.connection, name, modification{fields: []string{"spec.luns", "spec.hosts"},
		apply: changing(func(t *pb.Target) ([]string, error) { return o.addTo(t), nil })}, false)
	if err != nil {
		return k.about(name, err)
	}
	if len(changes) > 0 {
		m.say(k, object, "updated: "+strings.Join(changes, ", "))
	}
	if !o.wait {
		return nil
	}
	return m.g.waitForNeeds(ctx, m.command, m.connection, k, goal{kind: k, from: object, missing: unappliedTarget})
}

// addTo adds the disk and the host to a target, the disk with the first free number, and returns what it has changed.
func (o *diskOrder) addTo(t *pb.Target) []string {
	var changes []string
	spec := t.GetSpec()
	used := map[int32]bool{}
	mapped := false
	for _, lun := range spec.GetLuns() {
		used[lun.GetId()] = true
		mapped = mapped || lun.GetVolume() == o.name
	}
	if !mapped {
		lun := &pb.TargetLun{Volume: o.name}
		for used[lun.GetId()] {
			lun.Id++
		}
		spec.Luns = append(spec.Luns, lun)
		changes = append(changes, "LUN "+lunText(lun)+" added")
	}
	if !slices.Contains(spec.GetHosts(), o.host) {
		spec.Hosts = append(spec.Hosts, o.host)
		changes = append(changes, "host "+o.host+" added")
	}
	return changes
}
