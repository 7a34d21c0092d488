// Command make makes the archive of package upgrade again, with the programs of the release after which it is named. It builds
// nothing:
//
//	git worktree add ../release 880afa1
//	make -C ../release build
//	go build -o build/tools/make-upgrade ./tests/cluster/upgrade/make
//	build/tools/make-upgrade -programs ../release/build/bin
//
// It needs root, or user namespaces, and mkfs.xfs. Only dates and signatures of the certificates are not those of the release: they
// are valid for a hundred years, so that the test does not end with them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/cluster/upgrade"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	patience     = 2 * time.Minute
	stopPatience = 20 * time.Second
)

func main() {
	programs := flag.String("programs", "", "directory of the release's programs")
	out := flag.String("out", "tests/cluster/upgrade/testdata/"+upgrade.Release+".tar.gz", "archive that is written")
	flag.Parse()
	err := netns.Isolate()
	if err == nil {
		err = run(*programs, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make-upgrade:", err)
		os.Exit(1)
	}
}

func run(programs, out string) (err error) {
	programs, err = filepath.Abs(programs)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sluice-upgrade-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	shares, undo, err := upgrade.MakeDirectory(scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	if !shares {
		return errors.New("a snapshot needs XFS: install xfsprogs, and run as root on a machine with loop devices")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := cluster.Start(ctx, upgrade.Options(programs))
	if err != nil {
		return err
	}
	if err := fill(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, c.Logs(20)), c.Close())
	}
	// The control plane is stopped first: it would assign the volumes of a stopping gateway to the other one.
	if err := errors.Join(c.Replicas[0].Stop(stopPatience), c.Stop(), c.Close()); err != nil {
		return err
	}
	if err := prolong(filepath.Join(upgrade.Directory, "certs")); err != nil {
		return err
	}
	archive, err := upgrade.Pack()
	if err != nil {
		return err
	}
	return os.WriteFile(out, archive, 0o644) //nolint:gosec // it is part of the source
}

// fill creates what the test checks, and verifies that the release had the holes that the upgrade closes.
func fill(ctx context.Context, c *cluster.Cluster) error {
	for _, step := range []func(context.Context, *cluster.Cluster) error{admit, write, reserve, discover, spread} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// admit creates the hosts with CHAP, and admits all hosts to the target.
func admit(ctx context.Context, c *cluster.Cluster) error {
	text, names := "", []string{}
	for _, h := range upgrade.Hosts {
		text += fmt.Sprintf("---\napiVersion: sluice.dev/v1\nkind: Host\nmeta: {name: %s}\nspec: {%s}\n", h.Name, h.Spec())
		names = append(names, h.Name)
	}
	for i := range cluster.MaxHosts {
		names = append(names, fmt.Sprintf("host-%d", i+1))
	}
	var luns []string
	for i := range c.Volumes {
		luns = append(luns, fmt.Sprintf("{id: %d, volume: %s}", i, cluster.VolumeName(i)))
	}
	text += fmt.Sprintf("---\napiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, gatewayPool: default, paths: %d, "+
		"luns: [%s], hosts: [%s]}\n", cluster.Target, len(c.Gateways), strings.Join(luns, ", "), strings.Join(names, ", "))
	file := filepath.Join(upgrade.Directory, "hosts.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := c.Control(ctx, "apply", "-f", file); err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

func write(ctx context.Context, c *cluster.Cluster) error {
	session, err := c.Login(ctx, upgrade.Holder, 0)
	if err != nil {
		return err
	}
	defer session.LogOut()
	put := func(volume, content int) error {
		for _, command := range upgrade.Writes(uint16(volume), volume, content) {
			if _, err := session.Good(ctx, command); err != nil {
				return err
			}
		}
		return nil
	}
	for volume := range c.Volumes {
		if err := put(volume, 0); err != nil {
			return err
		}
	}
	if _, err := c.Control(ctx, "snapshot", "create", upgrade.Snapshot, "--volume", cluster.VolumeName(0), "--wait"); err != nil {
		return err
	}
	return put(0, upgrade.Content(0))
}

func reserve(ctx context.Context, c *cluster.Cluster) error {
	for gateway := range c.Gateways {
		for number, key := range map[int]uint64{upgrade.Holder: upgrade.HolderKey, upgrade.Registrant: upgrade.RegistrantKey} {
			session, err := c.Login(ctx, number, gateway)
			if err != nil {
				return err
			}
			_, err = session.Good(ctx, initiator.PersistentReserve(upgrade.Reserved, initiator.PRRegister, 0, 0, key))
			if err == nil && number == upgrade.Holder && gateway == 0 {
				_, err = session.Good(ctx, initiator.PersistentReserve(upgrade.Reserved, initiator.PRReserve, initiator.WriteExclusiveRegistrantsOnly, key, 0))
			}
			session.LogOut()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// discover verifies that the release admitted hosts that the present one refuses: every host with CHAP to a discovery session
// without CHAP, and those without a CHAP name to the target.
func discover(ctx context.Context, c *cluster.Cluster) error {
	for _, h := range upgrade.Hosts {
		options := initiator.Options{Portal: c.Portals(0)[0], Initiator: h.Initiators[0], ISID: [6]byte{0x80}}
		if _, err := initiator.Discover(ctx, options); err != nil {
			return fmt.Errorf("discovery of %s without CHAP: %w", h.Name, err)
		}
		options.Target = cluster.Target
		session, err := initiator.Login(ctx, options)
		if err == nil {
			session.LogOut()
		}
		if (err == nil) != (h.User == "") {
			return fmt.Errorf("login of %s without CHAP: %w", h.Name, err)
		}
	}
	return nil
}

// spread makes each gateway own a volume.
func spread(ctx context.Context, c *cluster.Cluster) error {
	for volume := range c.Volumes {
		if err := c.Bring(ctx, volume, volume%len(c.Gateways)); err != nil {
			return err
		}
	}
	return nil
}
