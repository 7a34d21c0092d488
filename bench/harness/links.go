package harness

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"sluice.dev/sluice/tests/cluster"
)

// The share of Ethernet's rate for TCP payload: 1448 of 1514 bytes of a full frame, which is what tc counts.
const payload = 1448.0 / 1514.0

// Payload returns the maximum TCP payload rate of a link, in bytes per second.
func Payload(bitsPerSecond int) float64 { return float64(bitsPerSecond) / 8 * payload }

const (
	burstBytes = 64 << 10
	queueBytes = 256 << 10
)

// Shape limits the rate of a device, in bits per second, in a node's namespace; empty: the program's own.
func Shape(node, device string, bitsPerSecond int) error {
	words := []string{"tc"}
	if node != "" {
		words = append(words, "-n", node)
	}
	return command(append(words, "qdisc", "replace", "dev", device, "root", "tbf", "rate", strconv.Itoa(bitsPerSecond)+"bit",
		"burst", strconv.Itoa(burstBytes), "limit", strconv.Itoa(queueBytes))...)
}

// AddNode makes the namespace of a client.
func AddNode(node string) error {
	if err := lines("ip netns add "+node, "ip -n "+node+" link set lo up"); err != nil {
		return err
	}
	return Steady(node)
}

// Steady sets the congestion control of a node's later sockets (empty: the program's own) to Reno, which every kernel allows in a
// namespace. BBR, the default of some machines, probes a link instead of filling it.
func Steady(node string) error {
	set := "sysctl -qw net.ipv4.tcp_congestion_control="
	if node != "" {
		set = "ip netns exec " + node + " " + set
	}
	if lines(set+"cubic") == nil {
		return nil
	}
	return lines(set + "reno")
}

// SteadyGateways is for cluster.Options.GatewayEnvironment: it is called before a gateway starts and opens its portals.
func SteadyGateways(gateway int) ([]string, error) { return nil, Steady(cluster.GatewayName(gateway)) }

// Plug connects a node to a bridge by a link that is shaped in both directions; the device in the node has the name of the port.
func Plug(node, port, bridge, address string, bitsPerSecond int) error {
	outside := node + "." + port
	if err := lines("ip link add "+outside+" type veth peer name "+port+" netns "+node, "ip link set "+outside+" master "+bridge+" up",
		"ip -n "+node+" addr add "+address+"/24 dev "+port, "ip -n "+node+" link set "+port+" up"); err != nil {
		return err
	}
	return ShapeBoth(node, port, bitsPerSecond)
}

// ShapeBoth shapes both ends of a node's link to a bridge, made by Plug or by package netns.
func ShapeBoth(node, port string, bitsPerSecond int) error {
	if err := Shape(node, port, bitsPerSecond); err != nil {
		return err
	}
	return Shape("", node+"."+port, bitsPerSecond)
}

// Join links two bridges, shaped in both directions.
func Join(bridge, other string, bitsPerSecond int) error {
	a, b := bridge+"-"+other[len(other)-1:], other+"-"+bridge[len(bridge)-1:]
	if err := lines("ip link add "+a+" type veth peer name "+b, "ip link set "+a+" master "+bridge+" up",
		"ip link set "+b+" master "+other+" up"); err != nil {
		return err
	}
	if err := Shape("", a, bitsPerSecond); err != nil {
		return err
	}
	return Shape("", b, bitsPerSecond)
}

// AddBridge makes a switch.
func AddBridge(name string) error {
	return lines("ip link add name "+name+" type bridge", "ip link set "+name+" up")
}

// Replug moves a node's link to another bridge.
func Replug(node, port, bridge string) error {
	return lines("ip link set " + node + "." + port + " master " + bridge)
}

func lines(all ...string) error {
	for _, line := range all {
		if err := command(strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

func command(words ...string) error {
	if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
