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

// step of a scenario: an administrator's action or a fault, and the state that it must reach before the next one.
type step struct {
	name string
	do   func(ctx context.Context) error
}

// scenario is a fixed sequence of steps in a cluster under load, judged by the same claims as random faults.
type scenario struct {
	replicas int
	steps    func(*clustered) []step
}

var scenarios = map[string]scenario{
	"rolling-upgrade":       {clusterReplicas, (*clustered).rollingUpgrade},
	"switch-down":           {clusterReplicas, (*clustered).switchDown},
	"etcd-lost":             {clusterReplicas, (*clustered).etcdLost},
	"controlplane-restored": {1, (*clustered).controlPlaneRestored},
	"preempted":             {clusterReplicas, (*clustered).preempted},
}

const (
	stepTimeout = 40 * time.Second
	// calm is the time between faults, so that their effects do not overlap.
	calm = 2 * time.Second
	// switchOutage is longer than hosts wait for a silent path; etcdOutage is a minute, as required.
	switchOutage = 8 * time.Second
	etcdOutage   = 60 * time.Second
)

// playSteps executes steps in order; the first failure ends the scenario.
func playSteps(ctx context.Context, all []step, note noter) error {
	for i, s := range all {
		note("step %d: %s", i+1, s.name)
		limited, cancel := context.WithTimeout(ctx, stepTimeout+etcdOutage)
		err := s.do(limited)
		cancel()
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.name, err)
		}
		if err := netns.Wait(ctx, calm); err != nil {
			return err
		}
	}
	return nil
}

// seen returns the cluster's own reports, to explain a failed step.
func (c *clustered) seen(ctx context.Context) string {
	var all strings.Builder
	for _, question := range [][]string{{"events", "--last", "40"}, {"volume", "describe", cluster.VolumeName(0)}} {
		limited, cancel := context.WithTimeout(ctx, stopBound)
		answer, err := c.Control(limited, question...)
		cancel()
		fmt.Fprintf(&all, "--- sluicectl %s\n%s", strings.Join(question, " "), answer)
		if err != nil {
			fmt.Fprintln(&all, err)
		}
	}
	return all.String() + c.Logs(40)
}

// rollingUpgrade: each gateway is drained, stopped by SIGTERM, started again and undrained.
func (c *clustered) rollingUpgrade() []step {
	var all []step
	for i, gateway := range c.Gateways {
		name := cluster.GatewayName(i)
		all = append(all,
			step{"drain " + name + " until it owns nothing", func(ctx context.Context) error {
				if err := c.Drain(ctx, i); err != nil {
					return err
				}
				return netns.Until(ctx, func() error { return c.ownsNothing(ctx, i) })
			}},
			step{"stop " + name + " and start it again", func(ctx context.Context) error {
				c.keeper.held[gateway].Store(true)
				defer c.keeper.held[gateway].Store(false)
				if err := gateway.Stop(stopBound); err != nil {
					return err
				}
				return gateway.Start()
			}},
			step{"take " + name + " into use", func(ctx context.Context) error {
				if err := netns.Until(ctx, func() error { return c.Undrain(ctx, i) }); err != nil {
					return err
				}
				return c.WaitReady(ctx)
			}})
	}
	return all
}

const stopBound = 15 * time.Second

func (c *clustered) ownsNothing(ctx context.Context, gateway int) error {
	for volume := range clusterVolumes {
		if _, err := c.Owned(ctx, volume); err != nil {
			return err
		}
		if owner, err := c.Owner(ctx, volume); err != nil || owner == gateway {
			return errors.Join(err, fmt.Errorf("%s is still owned there", cluster.VolumeName(volume)))
		}
	}
	return nil
}

// switchDown: all links to one fabric fail at once, and recover; then those to the other.
func (c *clustered) switchDown() []step {
	var all []step
	for _, fabric := range hostFabrics {
		all = append(all, step{fmt.Sprintf("switch %s fails for %v", fabric, switchOutage), func(ctx context.Context) error {
			var mends []netns.Undo
			defer func() {
				for _, mend := range mends {
					_ = mend() // the namespaces end with the run
				}
			}()
			for _, gateway := range c.Gateways {
				mend, err := c.Network.CutLink(gateway.Node, fabric)
				if err != nil {
					return err
				}
				mends = append(mends, mend)
			}
			return netns.Wait(ctx, switchOutage)
		}}, step{"all is as before", c.WaitReady})
	}
	return all
}

// etcdLost: every member of etcd is stopped for a minute. I/O is not affected (R3).
func (c *clustered) etcdLost() []step {
	return []step{
		{fmt.Sprintf("all members of etcd are killed, for %v", etcdOutage), func(ctx context.Context) error {
			for _, member := range c.Members {
				c.keeper.held[member].Store(true)
				defer c.keeper.held[member].Store(false)
				if err := member.Kill(); err != nil {
					return err
				}
			}
			return netns.Wait(ctx, etcdOutage)
		}},
		{"they come back, and with them the control plane", c.WaitReady},
		{"a volume is moved", c.moveAny},
	}
}

// controlPlaneRestored: the control plane and its store are lost, and restored to an earlier state. Later epochs that gateways
// have reached take precedence over the store.
func (c *clustered) controlPlaneRestored() []step {
	backup := filepath.Join(c.Directory, "backup.db")
	data := filepath.Join(c.Directory, "cp-1")
	var key []byte // of the secrets: stored separately from the data, as administrators are advised
	var reached uint64
	return []step{
		{"backup", func(ctx context.Context) (err error) {
			if key, err = os.ReadFile(filepath.Join(data, "secrets.key")); err != nil {
				return err
			}
			_, err = c.Control(ctx, "backup", backup)
			return err
		}},
		{"a volume is moved after the backup", func(ctx context.Context) (err error) {
			if err := c.moveAny(ctx); err != nil {
				return err
			}
			reached, err = c.Owned(ctx, 0)
			return err
		}},
		{"the control plane is lost with its data and restored", func(ctx context.Context) error {
			replica := c.Replicas[0]
			c.keeper.held[replica].Store(true)
			defer c.keeper.held[replica].Store(false)
			if err := errors.Join(replica.Kill(), os.RemoveAll(data)); err != nil {
				return err
			}
			if err := c.Restore(ctx, backup, data); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(data, "secrets.key"), key, 0o600); err != nil {
				return err
			}
			return replica.Start()
		}},
		{"what gateways have reached since the backup is known", func(ctx context.Context) error {
			return netns.Until(ctx, func() error {
				epoch, err := c.Owned(ctx, 0)
				if err == nil && epoch < reached {
					err = fmt.Errorf("%s is in epoch %d, and gateways have reached %d", cluster.VolumeName(0), epoch, reached)
				}
				return err
			})
		}},
		{"all is as before", c.WaitReady},
		{"a volume is moved", c.moveAny},
	}
}

// moveAny moves the first volume to the next gateway, and waits until that one serves it.
func (c *clustered) moveAny(ctx context.Context) error {
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		return err
	}
	next := (owner + 1) % clusterGateways
	if err := c.Move(ctx, 0, next); err != nil {
		return err
	}
	return netns.Until(ctx, func() error {
		if _, err := c.Owned(ctx, 0); err != nil {
			return err
		}
		if now, err := c.Owner(ctx, 0); err != nil || now != next {
			return errors.Join(err, fmt.Errorf("%s owns it", cluster.GatewayName(now)))
		}
		return nil
	})
}
