// Package cluster runs a complete Sluice for tests: control plane, gateways, volumes and a target. All processes are real, in
// namespaces that bridges connect (package netns).
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/netns"
)

// Fabrics of hosts, and the network of the cluster itself.
const (
	Red      = "red"
	Blue     = "blue"
	Internal = "cluster"
)

// ControlNode is the namespace of the control plane and its etcd.
const ControlNode = "cp"

// Target that maps every volume, LUN 0 first.
const (
	Target    = "iqn.2026-11.dev.sluice:cluster"
	Initiator = "iqn.2026-11.dev.sluice:cluster-host" // followed by a number from 1 to MaxHosts
	MaxHosts  = 8
)

const (
	iscsiPort      = 3260
	forwardingPort = 3261
	apiPort        = 7460 // of the first replica; the others follow
	etcdPort       = 2379 // of the first member; the others follow in steps of two
	etcdMembers    = 3
	volumeMiB      = 16
)

// Options of a cluster.
type Options struct {
	// Programs is the directory of the programs, usually build/bin. Gateway replaces the gateway there, if set.
	Programs, Gateway string
	// Etcd is the program of tests/cluster/etcd; needed for more than one replica.
	Etcd string
	// Directory for data and logs; it exists.
	Directory string
	Gateways  int
	Volumes   int
	// Node returns the node of a gateway, from 0, if set. The pool is on that of the first one.
	Node func(gateway int) string
	// Paths of the target; 0: one by every gateway.
	Paths int
	// GatewayEnvironment returns additions to a gateway's environment, if set; from 0. ReplicaEnvironment is the same for
	// replicas.
	GatewayEnvironment func(gateway int) ([]string, error)
	ReplicaEnvironment func(replica int) ([]string, error)
	// Replica is another control plane program than the one in Programs, if set.
	Replica string
	// Pool is the directory of the volumes, which exists; empty: one in Directory.
	Pool string
	// OtherPool is the directory of a second pool, which exists; it has the volumes of odd numbers. Empty: one pool.
	OtherPool string
	// Devices have one volume each, if set, instead of a directory.
	Devices []string
	// Ceph has the volumes, if set, instead of a directory.
	Ceph *Ceph
	// Replicas of the control plane: a single one has an embedded etcd, several share an etcd of EtcdMembers.
	Replicas int
	// EtcdMembers of the shared etcd; 0: three.
	EtcdMembers int
	// EtcdQuota is the most space of the database of each member, in bytes; 0: etcd's default.
	EtcdQuota int64
	// Fabrics of hosts, on each of which every gateway has a portal; empty: red and blue.
	Fabrics []string
	// VolumeMiB is the size of a volume; 0: 16.
	VolumeMiB int
}

// Cluster is a running cluster.
type Cluster struct {
	Options
	Network  *netns.Network
	Gateways []*netns.Process
	Replicas []*netns.Process
	Members  []*netns.Process

	connection *grpc.ClientConn
}

// GatewayName of a gateway, from 0; also its namespace.
func GatewayName(i int) string { return fmt.Sprintf("gw-%d", i+1) }

// VolumeName of a volume, from 0; it is the LUN of that number.
func VolumeName(i int) string { return fmt.Sprintf("vol-%d", i) }

// Start starts the control plane, creates all objects and starts the gateways. The caller must call Isolate (package netns)
// first. If it fails it ends all processes.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{Options: options}
	for _, step := range []func(context.Context) error{c.wire, c.startCeph, c.startControlPlane, c.makeObjects, c.startGateways} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *Cluster) wire(context.Context) (err error) {
	nodes := []string{ControlNode}
	for i := range c.Options.Gateways {
		nodes = append(nodes, GatewayName(i))
	}
	fabrics := append(slices.Clone(c.fabrics()), Internal)
	if c.Ceph != nil {
		fabrics, nodes = append(fabrics, Storage), append(nodes, CephNode)
	}
	c.Network, err = netns.NewNetwork(fabrics, nodes)
	return err
}

func (c *Cluster) program(name string) string { return filepath.Join(c.Programs, name) }
func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Directory}, parts...)...)
}
func (c *Cluster) certificate(name string) []string {
	return []string{"--tls-ca", c.path("certs", "ca.crt"), "--tls-cert", c.path("certs", name+".crt"),
		"--tls-key", c.path("certs", name+".key")}
}

func (c *Cluster) endpoint(replica int) string {
	return fmt.Sprintf("%s:%d", c.Network.Address(ControlNode, Internal), apiPort+replica)
}

func (c *Cluster) fabrics() []string {
	if len(c.Options.Fabrics) > 0 {
		return c.Options.Fabrics
	}
	return []string{Red, Blue}
}

// Portals of a gateway, one on each fabric of hosts: red, then blue, if none are named.
func (c *Cluster) Portals(gateway int) []string {
	var portals []string
	for _, fabric := range c.fabrics() {
		portals = append(portals, fmt.Sprintf("%s:%d", c.Network.Address(GatewayName(gateway), fabric), iscsiPort))
	}
	return portals
}

// ForwardingAddress of a gateway, from 0: the port to which other gateways log in.
func (c *Cluster) ForwardingAddress(gateway int) string {
	return fmt.Sprintf("%s:%d", c.Network.Address(GatewayName(gateway), Internal), forwardingPort)
}

// AllPortals of all gateways.
func (c *Cluster) AllPortals() []string {
	var all []string
	for i := range c.Gateways {
		all = append(all, c.Portals(i)...)
	}
	return all
}

// nodeOf returns the node of a gateway: one for all if the pool is a directory of a node, else one each.
func (c *Cluster) nodeOf(gateway int) string {
	if c.Node != nil {
		return c.Node(gateway)
	}
	if c.Ceph != nil {
		return fmt.Sprintf("node-%d", gateway+1)
	}
	return "node-1"
}

// gatewayCommand is the only function that knows a gateway's command line.
func (c *Cluster) gatewayCommand(i int) []string {
	program, name := c.Gateway, GatewayName(i)
	if program == "" {
		program = c.program("sluice-gateway")
	}
	words := []string{program, "--gateway-name", name, "--node", c.nodeOf(i), "--reactors", "1",
		"--state-dir", c.path(name + ".state"), "--admin-socket", c.path(name + ".socket"),
		"--device-records", c.path("devices")}
	for replica := range c.Options.Replicas {
		words = append(words, "--control-plane", c.endpoint(replica))
	}
	return append(words, c.certificate("gateway-"+name)...)
}

func (c *Cluster) controlPlaneCommand(i int) []string {
	program := c.Replica
	if program == "" {
		program = c.program("sluice-controlplane")
	}
	words := []string{program, "serve", "--listen", c.endpoint(i), "--metrics", "",
		"--data-dir", c.path(fmt.Sprintf("cp-%d", i+1))}
	if len(c.Members) > 0 {
		words = append(words, "--key-file", c.path("secrets.key"))
		for i := range c.Members {
			words = append(words, "--etcd-endpoints", etcdURL(i, 0))
		}
	}
	return append(words, c.certificate("server")...)
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	certs := []string{"certs", "--directory", c.path("certs"), "--host", c.Network.Address(ControlNode, Internal)}
	for i := range c.Options.Gateways {
		certs = append(certs, "--gateway", GatewayName(i))
	}
	if _, err := c.run(ctx, "sluice-controlplane", certs...); err != nil {
		return err
	}
	if c.Options.Replicas > 1 {
		key, err := c.run(ctx, "sluice-controlplane", "key")
		if err == nil {
			err = os.WriteFile(c.path("secrets.key"), key, 0o600)
		}
		if err == nil {
			err = c.startEtcd()
		}
		if err != nil {
			return err
		}
	}
	if err := c.startReplicas(ctx); err != nil {
		return err
	}
	return c.dial()
}

func (c *Cluster) startReplicas(ctx context.Context) error {
	for i := range c.Options.Replicas {
		var environment []string
		if c.ReplicaEnvironment != nil {
			var err error
			if environment, err = c.ReplicaEnvironment(i); err != nil {
				return err
			}
		}
		p, err := c.start(fmt.Sprintf("cp-%d", i+1), ControlNode, c.controlPlaneCommand(i), environment...)
		c.Replicas = append(c.Replicas, p)
		if err == nil {
			err = netns.UntilListens(ctx, p, c.endpoint(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) start(name, node string, command []string, environment ...string) (*netns.Process, error) {
	p := &netns.Process{Name: name, Node: node, Arguments: command, Environment: environment, Log: c.path(name + ".log")}
	return p, p.Start()
}

func (c *Cluster) startGateways(context.Context) error {
	for i := range c.Options.Gateways {
		var environment []string
		if c.GatewayEnvironment != nil {
			var err error
			if environment, err = c.GatewayEnvironment(i); err != nil {
				return err
			}
		}
		p, err := c.start(GatewayName(i), GatewayName(i), c.gatewayCommand(i), environment...)
		c.Gateways = append(c.Gateways, p)
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs a program until it ends and returns its output.
func (c *Cluster) run(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, c.program(program), arguments...)
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, complaint.String())
	}
	return output, nil
}

// Control runs sluicectl as administrator.
func (c *Cluster) Control(ctx context.Context, arguments ...string) ([]byte, error) {
	return c.run(ctx, "sluicectl", append(append([]string{"--server", c.endpoint(0)}, c.certificate("admin")...), arguments...)...)
}

// Restore restores the data directory of a stopped replica from a backup.
func (c *Cluster) Restore(ctx context.Context, backup, data string) error {
	_, err := c.run(ctx, "sluice-controlplane", "restore", "--from", backup, "--data-dir", data)
	return err
}

// dial opens the administrator's connection, to the first replica that answers.
func (c *Cluster) dial() (err error) {
	var endpoints []string
	for i := range c.Options.Replicas {
		endpoints = append(endpoints, c.endpoint(i))
	}
	c.connection, err = client.Connect(client.Options{Endpoints: endpoints, TLS: c.Files("admin")})
	return err
}

// Files returns the files of a certificate that the cluster's CA has issued, such as admin.
func (c *Cluster) Files(name string) client.Files {
	return client.Files{CA: c.path("certs", "ca.crt"), Certificate: c.path("certs", name+".crt"), Key: c.path("certs", name+".key")}
}

// Connection returns an administrator's connection to the control plane.
func (c *Cluster) Connection() grpc.ClientConnInterface { return c.connection }

func (c *Cluster) volumes() pb.VolumeServiceClient   { return pb.NewVolumeServiceClient(c.connection) }
func (c *Cluster) gateways() pb.GatewayServiceClient { return pb.NewGatewayServiceClient(c.connection) }
func (c *Cluster) targets() pb.TargetServiceClient   { return pb.NewTargetServiceClient(c.connection) }

const stopPatience = 15 * time.Second // a gateway takes at most 10 s (limits::kShutdownBound)

// Close ends everything, and kills processes that do not stop. Data and logs stay in the directory.
func (c *Cluster) Close() error {
	var all []error
	if c.connection != nil {
		all = append(all, c.connection.Close())
	}
	for _, p := range c.Processes() {
		all = append(all, p.Kill())
	}
	all = append(all, c.endCeph())
	if c.Network != nil {
		all = append(all, c.Network.Close())
	}
	return errors.Join(all...)
}

// Stop stops the gateways by SIGTERM.
func (c *Cluster) Stop() error {
	var all []error
	for _, p := range c.Gateways {
		all = append(all, p.Stop(stopPatience))
	}
	return errors.Join(all...)
}

// Processes returns the processes of the cluster, dependent ones first.
func (c *Cluster) Processes() []*netns.Process {
	var all []*netns.Process
	for _, group := range [][]*netns.Process{c.Gateways, c.Replicas, c.Members} {
		for _, p := range group {
			if p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// Logs returns the ends of all processes' logs, for messages.
func (c *Cluster) Logs(lines int) string {
	var text strings.Builder
	for _, p := range c.Processes() {
		fmt.Fprintf(&text, "--- %s (running: %v)\n%s\n", p.Name, p.Running(), p.LogTail(lines))
	}
	return text.String()
}
