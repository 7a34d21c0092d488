package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Ceph describes the Ceph cluster with the volumes. It is made for this cluster, in a separate namespace, and removed with it.
type Ceph struct {
	// Script is tests/lib/mini-ceph.
	Script string
	// Monitors and Disks are the numbers of daemons; 0: one.
	Monitors, Disks int
	// DiskMiB is the size of each disk, a sparse file; 0: 4096.
	DiskMiB int
	// Manager: there is a manager daemon, so that Ceph reports its usage.
	Manager bool
}

// Storage is the network between gateways and Ceph, if there is a Ceph; CephNode is the namespace of Ceph.
const (
	Storage  = "storage"
	CephNode = "ceph"
)

const defaultDiskMiB = 4096

func (c *Cluster) startCeph(ctx context.Context) error {
	if c.Ceph == nil {
		return nil
	}
	return c.MiniCeph(ctx, "start")
}

// MiniCeph runs the script on the cluster's folder: `down osd.0`, `up osd.0`, `stop`, `start`.
func (c *Cluster) MiniCeph(ctx context.Context, action string, more ...string) error {
	o := c.Ceph
	manager := 0
	if o.Manager {
		manager = 1
	}
	command := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", CephNode, o.Script, action, c.path("ceph")}, more...)...)
	command.Env = append(os.Environ(), "ADDRESS="+c.Network.Address(CephNode, Storage), fmt.Sprintf("MONS=%d", cmp.Or(o.Monitors, 1)),
		fmt.Sprintf("OSDS=%d", cmp.Or(o.Disks, 1)), fmt.Sprintf("OSD_MIB=%d", cmp.Or(o.DiskMiB, defaultDiskMiB)),
		fmt.Sprintf("MGR=%d", manager))
	// Its daemons would keep a pipe open.
	output, err := os.CreateTemp(c.Directory, "mini-ceph")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }() // the output is read before
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		text, _ := os.ReadFile(output.Name()) // without the output the error has less information
		return fmt.Errorf("mini-ceph %s: %w: %s", action, err, strings.TrimSpace(string(text)))
	}
	return nil
}

// Rados runs one of Ceph's programs as administrator: `ceph`, `rbd`, `rados`.
func (c *Cluster) Rados(ctx context.Context, words ...string) (string, error) {
	command := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", CephNode}, words...)...)
	command.Env = append(os.Environ(), "CEPH_CONF="+c.path("ceph", "ceph.conf"))
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(complaint.String()))
	}
	return string(output), nil
}

var monitorAddress = regexp.MustCompile(`v2:([0-9.]+:[0-9]+)`)

// CephPool returns the spec of the storage pool, as YAML; with another pool or key, if given.
func (c *Cluster) CephPool(pool, key string) (string, error) {
	conf, err := os.ReadFile(c.path("ceph", "ceph.conf"))
	if err != nil {
		return "", err
	}
	var monitors []string
	for _, found := range monitorAddress.FindAllStringSubmatch(string(conf), -1) {
		monitors = append(monitors, fmt.Sprintf("%q", found[1]))
	}
	ring, err := os.ReadFile(c.path("ceph", "gateway.keyring"))
	if err != nil {
		return "", err
	}
	if key == "" {
		_, after, _ := strings.Cut(string(ring), "key = ")
		key, _, _ = strings.Cut(after, "\n")
	}
	return fmt.Sprintf("rbd: {monitors: [%s], user: gateway, key: %q, pool: %s}", strings.Join(monitors, ", "), strings.TrimSpace(key), pool), nil
}

// Blocklist returns the blocklisted clients, without expiry times.
func (c *Cluster) Blocklist(ctx context.Context) ([]string, error) {
	listed, err := c.Rados(ctx, "ceph", "osd", "blocklist", "ls")
	if err != nil {
		return nil, err
	}
	var clients []string
	for _, line := range strings.Split(listed, "\n") {
		if client, _, found := strings.Cut(strings.TrimSpace(line), " "); found && strings.Contains(client, "/") {
			clients = append(clients, client)
		}
	}
	return clients, nil
}

// ImageOf returns the image of a volume, by the volume's name.
func (c *Cluster) ImageOf(ctx context.Context, volume string) (string, error) {
	uid, err := c.Control(ctx, "volume", "get", volume, "-o", "json")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`"uid": *"([0-9a-f-]+)"`).FindSubmatch(uid)
	if found == nil {
		return "", fmt.Errorf("volume %s has no uid: %s", volume, uid)
	}
	return "volume-" + string(found[1]), nil
}

func (c *Cluster) endCeph() error {
	if c.Ceph == nil || c.Network == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(c.path("ceph"), "lock")); err != nil {
		return nil // it was never started
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopPatience)
	defer cancel()
	return c.MiniCeph(ctx, "destroy")
}
