package netns

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Network is a set of bridges, and of nodes with one port on each. The host, which is also on every bridge, is the namespace in
// which the program itself runs.
type Network struct {
	Fabrics []string
	Nodes   []string
	cuts    atomic.Int64
}

// NewNetwork makes the bridges and the nodes' namespaces. The caller must call Isolate first.
func NewNetwork(fabrics, nodes []string) (*Network, error) {
	n := &Network{Fabrics: fabrics, Nodes: nodes}
	for _, node := range nodes {
		if err := commands("ip netns add "+node, "ip -n "+node+" link set lo up"); err != nil {
			return nil, err
		}
	}
	for _, fabric := range fabrics {
		bridge := "br-" + fabric
		if err := commands("ip link add "+bridge+" type bridge", "ip link set "+bridge+" up",
			"ip addr add "+n.HostAddress(fabric)+"/24 dev "+bridge); err != nil {
			return nil, err
		}
		for _, node := range nodes {
			port := port(node, fabric)
			if err := commands("ip link add "+port+" type veth peer name "+fabric+" netns "+node,
				"ip link set "+port+" master "+bridge+" up",
				"ip -n "+node+" addr add "+n.Address(node, fabric)+"/24 dev "+fabric,
				"ip -n "+node+" link set "+fabric+" up"); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// port returns the name of the bridge's end of a node's link; names of interfaces have at most 15 bytes.
func port(node, fabric string) string { return node + "." + fabric }

// HostAddress of the host on a fabric.
func (n *Network) HostAddress(fabric string) string {
	return fmt.Sprintf("10.%d.0.1", 1+slices.Index(n.Fabrics, fabric))
}

// Address of a node on a fabric.
func (n *Network) Address(node, fabric string) string {
	return fmt.Sprintf("10.%d.0.%d", 1+slices.Index(n.Fabrics, fabric), 10+slices.Index(n.Nodes, node))
}

func commands(lines ...string) error {
	for _, line := range lines {
		if err := run(strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// Undo ends a fault of the network.
type Undo func() error

// CutLink cuts a node's link: both ends lose their carrier.
func (n *Network) CutLink(node, fabric string) (Undo, error) {
	line := "ip link set " + port(node, fabric)
	return func() error { return commands(line + " up") }, commands(line + " down")
}

// Direction of packets from the view of a node.
type Direction string

// Directions.
const (
	In  Direction = "input"
	Out Direction = "output"
)

// Drop loses a share of a node's packets on a fabric, in percent, in these directions.
func (n *Network) Drop(node, fabric string, percent int, directions ...Direction) (Undo, error) {
	rules := map[Direction]string{}
	for _, direction := range directions {
		rule := "drop"
		if percent < 100 {
			rule = fmt.Sprintf("numgen random mod 100 < %d drop", percent)
		}
		rules[direction] = interfaceMatch(direction, fabric) + " " + rule
	}
	return n.filter(node, rules)
}

// Partition separates two nodes on a fabric; others reach both.
func (n *Network) Partition(node, other, fabric string) (Undo, error) {
	peer := n.Address(other, fabric)
	return n.filter(node, map[Direction]string{In: "ip saddr " + peer + " drop", Out: "ip daddr " + peer + " drop"})
}

// ForgeResets answers packets to a node's TCP port with an RST that the node does not know of.
func (n *Network) ForgeResets(node, fabric string, tcpPort int) (Undo, error) {
	return n.filter(node, map[Direction]string{
		In: fmt.Sprintf("%s tcp dport %d reject with tcp reset", interfaceMatch(In, fabric), tcpPort)})
}

// DeliverLate loses all packets to a node on a fabric. After `heals` only new connections are still blocked. Data in the hosts'
// TCP queues then arrives late, on the connection on which it was sent, if that is still open. The kernel's timers decide when:
// data that is lost at the beginning arrives about 6.2 s later.
func (n *Network) DeliverLate(node, fabric string, heals time.Duration) (Undo, error) {
	undoNew, err := n.filter(node, map[Direction]string{In: interfaceMatch(In, fabric) + " tcp flags & (syn | ack) == syn drop"})
	if err != nil {
		return nil, err
	}
	undoAll, err := n.Drop(node, fabric, 100, In)
	if err != nil {
		return nil, errors.Join(err, undoNew())
	}
	healed := make(chan error, 1)
	timer := time.AfterFunc(heals, func() { healed <- undoAll() })
	return func() error {
		if timer.Stop() {
			healed <- undoAll()
		}
		return errors.Join(<-healed, undoNew())
	}, nil
}

// HoldBack queues a node's packets on a fabric, except for one packet and 10 bytes a second, until Undo. Then they are sent in
// order, when the node sends the next packet. Packets to the node are not affected.
func (n *Network) HoldBack(node, fabric string) (Undo, error) {
	queue := func(action, rate string) error {
		return commands("ip netns exec " + node + " tc qdisc " + action + " dev " + fabric + " root tbf limit 16mb rate " + rate)
	}
	return func() error { return queue("change", "10gbit burst 64kb") }, queue("replace", "80bit burst 1540")
}

func interfaceMatch(direction Direction, fabric string) string {
	if direction == In {
		return "iifname " + fabric
	}
	return "oifname " + fabric
}

// filter adds rules to a separate table in a node's namespace.
func (n *Network) filter(node string, rules map[Direction]string) (Undo, error) {
	table := fmt.Sprintf("inet fault%d", n.cuts.Add(1))
	script := "add table " + table + "\n"
	for direction, rule := range rules {
		script += fmt.Sprintf("add chain %s %s { type filter hook %s priority 0; }\nadd rule %s %s %s\n",
			table, direction, direction, table, direction, rule)
	}
	undo := func() error { return run("ip", "netns", "exec", node, "nft", "delete", "table "+table) }
	return undo, run("ip", "netns", "exec", node, "nft", script)
}

// Close removes bridges and namespaces, with the remaining connections of processes in them.
func (n *Network) Close() error {
	var all []error
	for _, fabric := range n.Fabrics {
		for _, node := range n.Nodes { // with the namespace they would be removed later, and conflict with the next ones
			all = append(all, commands("ip link del "+port(node, fabric)))
		}
		all = append(all, commands("ip link del br-"+fabric))
	}
	for _, node := range n.Nodes {
		all = append(all, commands("ip netns del "+node))
	}
	return errors.Join(all...)
}
