package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// Faults of a cluster whose volumes are in a real Ceph: of its daemons, of the network to it, and blocklisting by an
// administrator.

// cephOf returns the Ceph that has the volumes, made by a script; nil: they are in a directory.
func (e experiment) cephOf() (*cluster.Ceph, error) {
	if !e.rbd {
		return nil, nil
	}
	script, err := filepath.Abs(e.miniCeph)
	if err == nil {
		_, err = os.Stat(script)
	}
	return &cluster.Ceph{Script: script}, err
}

const (
	daemonAwayShortest, daemonAwayLongest = 500 * time.Millisecond, 5 * time.Second
	// Longer than any run; gateways are fenced for ten years.
	blocklistedFor = "31536000"
	// Another gateway serves within 12 s, even with few processors.
	takenOverSoonest, takenOverLatest = 12 * time.Second, 15 * time.Second
)

func (c *clustered) cephFaults() []*fault {
	if c.Ceph == nil {
		return nil
	}
	all := []*fault{c.daemonKilled("osd.0"), c.daemonKilled("mon.0")}
	for i, gateway := range c.Gateways {
		pair := gateway.Node + " and Ceph"
		all = append(all, c.blocklisted(i), leftBeforeCeph(c.Network, gateway, hostFabrics), networkFault("partition between "+pair, pair, "partition from Ceph", 500*time.Millisecond, 12*time.Second,
			func() (netns.Undo, error) {
				return c.Network.Partition(gateway.Node, cluster.CephNode, cluster.Storage)
			}))
	}
	return all
}

func (c *clustered) daemonKilled(daemon string) *fault {
	return &fault{name: "SIGKILL of " + daemon, on: "Ceph", kind: "kill of Ceph's", weight: 1, shortest: daemonAwayShortest, longest: daemonAwayLongest,
		do:   func(ctx context.Context) error { return c.MiniCeph(ctx, "down", daemon, "KILL") },
		undo: func(ctx context.Context) error { return c.MiniCeph(ctx, "up", daemon) }}
}

// leftBeforeCeph: a gateway's requests to Ceph are delayed on its machine until its volumes have long had another owner and its
// hosts have repeated them there. Then they reach the disks, and only these can refuse them (R2).
func leftBeforeCeph(network *netns.Network, p *netns.Process, fabrics []string) *fault {
	return leftBehind("what "+p.Name+" asks of Ceph held back, its isolation and resets to its hosts", p.Node+"'s link to "+cluster.Internal,
		"left before Ceph", takenOverSoonest, takenOverLatest, unread, network, p.Node, fabrics, func(context.Context) (netns.Undo, error) {
			online, err := network.Drop(p.Node, cluster.Internal, 100, netns.In, netns.Out)
			if err != nil {
				return nil, err
			}
			send, err := network.HoldBack(p.Node, cluster.Storage)
			if err != nil {
				return nil, errors.Join(err, online())
			}
			return undoAll(online, send), nil
		})
}

// blocklisted: an administrator blocklists a healthy gateway. It must detect that, and return.
func (c *clustered) blocklisted(gateway int) *fault {
	name := "blocklisting of " + cluster.GatewayName(gateway)
	return &fault{name: name, on: "Ceph", kind: "blocklisting", weight: 1, do: func(ctx context.Context) error {
		address := c.Network.Address(cluster.GatewayName(gateway), cluster.Storage)
		clients, err := c.clientsAt(ctx, address)
		for _, client := range clients {
			if err == nil {
				_, err = c.Rados(ctx, "ceph", "osd", "blocklist", "add", client, blocklistedFor)
			}
		}
		if err != nil || len(clients) == 0 {
			c.note("%s: it holds nothing there, or this cannot be found out (%v)", name, err)
		}
		return nil
	}}
}

// clientsAt returns the clients at an address that have an image's lock.
func (c *clustered) clientsAt(ctx context.Context, address string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, blocklistPatience)
	defer cancel()
	images, err := c.Rados(ctx, "rbd", "ls", "rbd")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, image := range strings.Fields(images) {
		locks, err := c.Rados(ctx, "rbd", "lock", "ls", "rbd/"+image)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", image, err)
		}
		for _, word := range strings.Fields(locks) {
			if strings.HasPrefix(word, address+":") {
				found[word] = true
			}
		}
	}
	var clients []string
	for client := range found {
		clients = append(clients, client)
	}
	return clients, nil
}

const blocklistPatience = 5 * time.Second
