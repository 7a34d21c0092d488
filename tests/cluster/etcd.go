package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// EtcdURLs of all members for clients. They are of the control plane's namespace.
func (c *Cluster) EtcdURLs() (all []string) {
	for i := range c.Members {
		all = append(all, etcdURL(i, 0))
	}
	return all
}

func etcdURL(member, peer int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", etcdPort+2*member+peer)
}

func (c *Cluster) startEtcd() error {
	members := cmp.Or(c.EtcdMembers, etcdMembers)
	var all []string
	for i := range members {
		all = append(all, fmt.Sprintf("etcd-%d=%s", i+1, etcdURL(i, 1)))
	}
	for i := range members {
		name := fmt.Sprintf("etcd-%d", i+1)
		p, err := c.start(name, ControlNode, []string{c.Etcd, "-name", name, "-data-dir", c.path(name), "-client", etcdURL(i, 0),
			"-peer", etcdURL(i, 1), "-members", strings.Join(all, ","), "-quota-backend-bytes", fmt.Sprint(c.EtcdQuota)})
		c.Members = append(c.Members, p)
		if err != nil {
			return err
		}
	}
	return nil
}

// OtherKey makes another key file for replicas, and returns its path.
func (c *Cluster) OtherKey(ctx context.Context) (string, error) {
	key, err := c.run(ctx, "sluice-controlplane", "key")
	if err != nil {
		return "", err
	}
	path := c.path("other.key")
	return path, os.WriteFile(path, key, 0o600)
}

// Doctor returns what `sluicectl doctor` prints, although it exits with 1 if there is a finding.
func (c *Cluster) Doctor(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, c.program("sluicectl"), append(append([]string{"--server", c.endpoint(0)}, c.certificate("admin")...), "doctor")...)
	said, err := command.CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 1 {
		err = nil
	}
	return string(said), err
}
