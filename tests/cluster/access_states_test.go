package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// Gateways of the table. Only the first two reach the data.
const (
	first     = iota // owns the volume when a row begins
	candidate        // can take over
	outsider         // is on another node, and forwards
	gateways
)

// Phases of a path. The states of groups are those of first, candidate and outsider.
const (
	ownedByFirst     = "optimized,non-optimized,non-optimized"
	ownedByCandidate = "non-optimized,optimized,non-optimized"
	inTransition     = "transitioning,transitioning,transitioning"
)

var (
	before = phase{[]string{good}, []string{good}, []string{ownedByFirst}}
	after  = phase{[]string{good}, []string{good}, []string{ownedByCandidate}}
	// moves: the owner is lost, and a takeover is possible (DESIGN R11). Until a gateway learns of it, it reports the groups of the
	// epoch that it knows.
	moves = phase{[]string{transition, good}, []string{transition, good}, []string{inTransition, ownedByFirst}}
	// unreached: the gateway does not reach the owner, and expects the control plane to name another one.
	unreached = phase{[]string{transition, good}, []string{transition, good}, []string{ownedByFirst}}
	// planned: commands wait for the next owner, and none fails (R7). TEST UNIT READY is a question about the state.
	planned = phase{[]string{transition, good}, []string{good}, []string{inTransition, ownedByFirst}}
	// noOwner: no takeover is possible.
	noOwner = phase{[]string{unavailable}, []string{unavailable}, []string{"unavailable,unavailable,unavailable"}}
	// cutOff: the outsider reaches neither the owner nor the control plane. Only its own group differs (R11).
	cutOff = phase{[]string{unavailable}, []string{unavailable}, []string{"optimized,non-optimized,unavailable"}}
	// reconnects: the outsider hears the control plane again, and its connection to the owner is not open yet.
	reconnects = phase{[]string{transition}, []string{transition}, []string{ownedByFirst}}
	// removing: the owner has removed the LUN, and refuses forwarded commands; the forwarder removes it a moment later.
	removing = phase{[]string{good, noLogicalLUN}, []string{good, noLogicalLUN}, []string{ownedByFirst}}
	// noLUN: the LUN is gone.
	noLUN = phase{[]string{noLogicalLUN}, []string{noLogicalLUN}, []string{noLogicalLUN}}
	ended = phase{[]string{lost}, []string{lost}, []string{lost}}
)

// row is an event, and the phases that each path passes.
type row struct {
	name string
	// given changes the state before the hosts begin; nil: nothing.
	given func(context.Context) error
	act   func(ctx context.Context, paths []*pathWatch) error
	// lun that is watched.
	lun uint16
	// paths by gateway; nil: the gateway does not run, or is not watched.
	paths [gateways][]phase
}

// The states that hosts are shown while a volume loses its owner in each possible way. 02/04/0C (Unavailable) makes Linux fail the
// path, so it is allowed only where no gateway can take over.
func TestAccessStatesOfEachPathWhileAVolumeLosesItsOwner(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: gateways, Volumes: 2, Replicas: 1, Node: func(gateway int) string {
		return map[bool]string{true: "node-2", false: "node-1"}[gateway == outsider]
	}})
	stop := func(gateway int) func(context.Context, []*pathWatch) error {
		return func(context.Context, []*pathWatch) error { return c.Gateways[gateway].Stop(processPatience) }
	}
	kill := func(gateway int) func(context.Context, []*pathWatch) error {
		return func(context.Context, []*pathWatch) error { return c.Gateways[gateway].Kill() }
	}
	alone := func(context.Context) error { return c.Gateways[candidate].Kill() }
	for _, r := range []row{
		{"SIGTERM of the owner", nil, stop(first),
			0, [gateways][]phase{{before, moves, ended}, {before, moves, after}, {before, moves, after}}},
		{"SIGKILL of the owner", nil, kill(first),
			0, [gateways][]phase{{before, ended}, {before, moves, after}, {before, moves, after}}},
		{"drain of the owner", nil, func(ctx context.Context, _ []*pathWatch) error { return c.Drain(ctx, first) },
			0, [gateways][]phase{{before, planned, after}, {before, planned, after}, {before, planned, after}}},
		{"loss of the control plane, then SIGKILL of the owner; the control plane returns", nil,
			func(ctx context.Context, paths []*pathWatch) error {
				err := c.Replicas[0].Kill()
				for _, w := range paths {
					err = errors.Join(err, w.more(ctx, 100), w.in(0))
				}
				err = errors.Join(err, c.Gateways[first].Kill())
				for _, w := range paths[1:] {
					err = errors.Join(err, w.shows(ctx, "READ", transition), w.more(ctx, 2))
				}
				return errors.Join(err, c.Replicas[0].Start())
			}, 0, [gateways][]phase{{before, ended}, {before, moves, after}, {before, moves, after}}},
		{"SIGTERM of the owner that is the last candidate", alone, stop(first),
			0, [gateways][]phase{{before, moves, ended}, nil, {before, moves, noOwner}}},
		{"SIGKILL of the owner that is the last candidate", alone, kill(first),
			0, [gateways][]phase{{before, ended}, nil, {before, moves, noOwner}}},
		{"a candidate returns to a volume without an owner", func(ctx context.Context) error {
			return errors.Join(c.Gateways[first].Kill(), c.Gateways[candidate].Kill(), withoutOwner(ctx, c))
		}, func(context.Context, []*pathWatch) error { return c.Gateways[candidate].Start() },
			0, [gateways][]phase{nil, nil, {noOwner, moves, after}}},
		// TEST UNIT READY goes to the owner, and waits as a READ does.
		{"the outsider reaches neither the owner nor the control plane, and does again", nil,
			func(ctx context.Context, paths []*pathWatch) error {
				undo, err := c.Network.CutLink(cluster.GatewayName(outsider), cluster.Internal)
				if err != nil {
					return err
				}
				for _, group := range []string{transition, unavailable} {
					err = errors.Join(err, paths[outsider].shows(ctx, "READ", group))
				}
				return errors.Join(err, paths[outsider].more(ctx, 2), undo())
			}, 0, [gateways][]phase{{before}, {before}, {before, unreached, cutOff, reconnects, before}}},
		{"deletion of the volume, which is refused while it is a LUN", nil, func(ctx context.Context, paths []*pathWatch) error {
			_, err := c.Control(ctx, "volume", "delete", cluster.VolumeName(1))
			if err == nil {
				return errors.New("a volume that is a LUN was deleted")
			}
			for _, w := range paths {
				if err := w.more(ctx, 10); err != nil {
					return err
				}
			}
			return nil
		}, 1, [gateways][]phase{{before}, {before}, {before}}},
		{"removal of the LUN", nil, func(ctx context.Context, _ []*pathWatch) error { return mapOnlyFirst(ctx, t, c, gateways) },
			1, [gateways][]phase{{before, removing, noLUN}, {before, removing, noLUN}, {before, removing, noLUN}}},
		// The path stays until the hosts have left it (decide.LeaveTimeout).
		{"deletion of the gateway", nil, func(ctx context.Context, _ []*pathWatch) error {
			_, err := c.Control(ctx, "gateway", "delete", cluster.GatewayName(first), "--yes")
			return err
		}, 0, [gateways][]phase{{before, planned, after}, {before, planned, after}, {before, planned, after}}},
	} {
		t.Run(r.name, func(t *testing.T) { runRow(ctx, t, c, r) })
	}
}

const processPatience = 15 * time.Second

func runRow(ctx context.Context, t *testing.T, c *cluster.Cluster, r row) {
	if err := restore(ctx, c); err != nil {
		t.Fatal(err)
	}
	var groups []uint16
	for gateway := range gateways {
		number, err := c.Number(ctx, gateway)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, uint16(number))
	}
	if r.given != nil {
		if err := r.given(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var paths []*pathWatch
	for gateway, phases := range r.paths {
		if phases != nil {
			paths = append(paths, &pathWatch{name: "path of " + cluster.GatewayName(gateway), session: login(ctx, t, c, 1, gateway),
				lun: r.lun, groups: groups, phases: phases})
		}
	}
	watched(ctx, t, func(ctx context.Context) error { return r.act(ctx, paths) }, paths...)
}

// restore starts all processes and restores all objects, and returns once the first gateway serves all volumes.
func restore(ctx context.Context, c *cluster.Cluster) error {
	for _, p := range c.Processes() {
		if !p.Running() {
			if err := p.Start(); err != nil {
				return err
			}
		}
	}
	if err := netns.Until(ctx, func() error { return c.Undrain(ctx, first) }); err != nil {
		return err
	}
	if _, err := c.Control(ctx, "apply", "-f", filepath.Join(c.Directory, "objects.yaml")); err != nil {
		return err
	}
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	for volume := range c.Volumes {
		// A volume stays where a request has moved it (decide.RequestedMoveHolds), and is not rebalanced during a row.
		for _, gateway := range []int{candidate, first} {
			if err := c.Bring(ctx, volume, gateway); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutOwner returns once the outsider answers that no takeover is possible.
func withoutOwner(ctx context.Context, c *cluster.Cluster) error {
	session, err := c.Login(ctx, 2, outsider)
	if err != nil {
		return err
	}
	defer session.Close()
	return netns.Until(ctx, func() error {
		response, err := session.Do(ctx, initiator.TestUnitReady(0))
		if err == nil && response.Sense.String() != unavailable {
			err = fmt.Errorf("it answers %v", response)
		}
		return err
	})
}

// mapOnlyFirst removes all LUNs except the first one. paths is the number of gateways that export the target.
func mapOnlyFirst(ctx context.Context, t *testing.T, c *cluster.Cluster, paths int) error {
	file := filepath.Join(t.TempDir(), "target.yaml")
	text := fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, gatewayPool: default, "+
		"paths: %d, luns: [{id: 0, volume: %s}], hosts: [host-1, host-2]}\n", cluster.Target, paths, cluster.VolumeName(0))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := c.Control(ctx, "apply", "-f", file)
	return err
}
