package cluster

import (
	"context"
	"errors"
)

// Resume returns the cluster that an earlier run left in a directory, with nothing started. The options are those of that run, so
// that every process gets the same addresses and arguments. The caller must call Close.
func Resume(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{Options: options}
	err := c.wire(ctx)
	if err == nil {
		err = c.dial()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// StartControlPlane starts the replicas of a resumed cluster, and waits until each listens.
func (c *Cluster) StartControlPlane(ctx context.Context) error { return c.startReplicas(ctx) }

// StartGateways starts the gateways of a resumed cluster.
func (c *Cluster) StartGateways(ctx context.Context) error { return c.startGateways(ctx) }

// Address returns the address of a replica, from 0; the number after the last replica is also valid.
func (c *Cluster) Address(replica int) string { return c.endpoint(replica) }

// NewKey returns the text of a new key file for secrets.
func (c *Cluster) NewKey(ctx context.Context) ([]byte, error) {
	return c.run(ctx, "sluice-controlplane", "key")
}
