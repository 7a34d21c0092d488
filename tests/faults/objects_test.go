package faults_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/tests/cluster"
)

const password = "chap: {username: web, password: correct-horse-1}"

// gatewayOf returns a Gateway that no process is.
func gatewayOf(name, pool, node string, address int) string {
	return fmt.Sprintf("Gateway %s {gatewayPool: %s, node: %s, portals: [{fabric: red, listen: \"10.9.0.%d:3260\"}], forwardingAddress: \"10.9.0.%d:3261\"}",
		name, pool, node, address, address)
}

func targetOf(name, pool, more string) string {
	return fmt.Sprintf("Target %s {iqn: \"iqn.2026-11.dev.sluice:%s\", gatewayPool: %s, %s}", name, name, pool, more)
}

// objectRows are faults of objects, as a user makes them.
var objectRows = []fault{
	{name: "a host names a switch that its fabric does not have", id: "UnknownSwitch", object: "Host/lost",
		cause:  "switch s9, which fabric red does not have",
		induce: resources("Host lost {initiators: [\"iqn.2026-11.org.example:lost\"], switches: [red/s9], " + password + "}")},
	{name: "a portal names a switch that its fabric does not have", id: "UnknownSwitch", object: "Gateway/elsewhere",
		cause: "switch s8, which fabric red does not have",
		induce: resources("GatewayPool elsewhere {fabrics: [red]}",
			strings.Replace(gatewayOf("elsewhere", "elsewhere", "node-8", 80), "fabric: red", "fabric: red, switch: s8", 1))},
	{name: "a gateway pool has no gateway", id: "NoGateway", object: "GatewayPool/empty", cause: "has no gateway",
		induce: resources("GatewayPool empty {fabrics: [red]}")},
	{name: "a gateway was never started", id: "GatewayNeverConnected", object: "Gateway/never", cause: "has not connected yet",
		induce: resources("GatewayPool never {fabrics: [red]}", gatewayOf("never", "never", "node-7", 70))},
	{name: "a gateway pool has one gateway", id: "GatewaysNotRedundant", object: "GatewayPool/alone", cause: "has one gateway, without a peer",
		induce: resources("GatewayPool alone {fabrics: [red]}", gatewayOf("alone", "alone", "node-6", 60))},
	{name: "all gateways of a pool are on one node", id: "GatewaysNotRedundant", object: "GatewayPool/pair",
		cause: "has 2 gateways, all on one node",
		induce: resources("GatewayPool pair {fabrics: [red]}", gatewayOf("pair-1", "pair", "node-5", 51),
			gatewayOf("pair-2", "pair", "node-5", 52))},
	{name: "a host has no authentication", id: "HostUnauthenticated", object: "Host/open", cause: "without authentication",
		induce: resources("Host open {initiators: [\"iqn.2026-11.org.example:open\"], allowUnauthenticated: true}")},
	{name: "a target permits no host", id: "TargetWithoutHosts", object: "Target/closed", cause: "permits no host",
		induce: resources(targetOf("closed", "default", "paths: 2"))},
	{name: "a target has no LUN", id: "TargetWithoutLuns", object: "Target/hollow", cause: "has no LUN",
		induce: resources(targetOf("hollow", "default", "paths: 2, hosts: [host-1]"))},
	{name: "a target has one path", id: "TargetHasOnePath", object: "Target/narrow", cause: "is to have one path",
		induce: resources(targetOf("narrow", "default", "paths: 1, hosts: [host-1]"))},
	{name: "a target wants more paths than there are gateways", id: "FewerPaths", object: "Target/wide", cause: "has 3 of 5 paths",
		induce: resources(targetOf("wide", "default", "paths: 5, hosts: [host-1]"))},
	{name: "a target's gateway pool has no gateway", id: "TargetNotExported", object: "Target/stranded", cause: "no gateway exports it",
		induce: resources("GatewayPool deserted {fabrics: [red]}", targetOf("stranded", "deserted", "paths: 2, hosts: [host-1]"))},
	{name: "a pool is on a node without a gateway", id: "PoolWithoutGateway", object: "StoragePool/remote",
		cause: "no gateway is ready on node node-9", induce: resources("StoragePool remote {local: {node: node-9, directory: /srv/remote}}")},
	{name: "the directory of a pool does not exist", id: "PoolUnreachable", object: "StoragePool/absent", cause: "/nowhere/at/all",
		induce: resources("StoragePool absent {local: {node: node-1, directory: /nowhere/at/all}}")},
	{name: "a move to a gateway that does not reach the data", id: "RequestFailed", object: "Volume/moved", cause: "gw-3",
		induce: func(s *system) (func() error, error) {
			_, err := s.volumeIn("moved")
			return func() error { return s.ctl("volume move moved --wait --timeout 20s") }, errors.Join(err, s.ctl("volume move moved --to gw-3"))
		}},
}

// withPasswords gives every host of a cluster CHAP, because hosts without it are findings.
func (s *system) withPasswords() error {
	var hosts []string
	for i := range cluster.MaxHosts {
		hosts = append(hosts, fmt.Sprintf("Host host-%d {initiators: [\"%s%d\"], %s}", i+1, cluster.Initiator, i+1,
			strings.Replace(password, "web", fmt.Sprintf("web-%d", i+1), 1)))
	}
	return s.apply(slices.Clone(hosts)...)
}
