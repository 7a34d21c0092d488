package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/netns"
)

// Grow increases the number of volumes; each is a LUN of the target.
func (c *Cluster) Grow(ctx context.Context, volumes int) error {
	c.Volumes = volumes
	return c.makeObjects(ctx)
}

const targetName = "cluster"

// PoolName is the name of the storage pool of the volumes, otherPoolName that of Options.OtherPool.
const (
	PoolName      = "pool"
	otherPoolName = "pool-2"
)

// poolOf returns the name of the pool of a volume, from 0.
func (c *Cluster) poolOf(volume int) string {
	if c.OtherPool != "" && volume%2 == 1 {
		return otherPoolName
	}
	return PoolName
}

// poolSpec returns the spec of the pool, as YAML.
func (c *Cluster) poolSpec() (string, error) {
	if c.Ceph != nil {
		return c.CephPool("rbd", "")
	}
	if len(c.Devices) > 0 {
		return fmt.Sprintf("local: {node: %s, devices: [%s]}", c.nodeOf(0), strings.Join(c.Devices, ", ")), nil
	}
	directory := c.Pool
	if directory == "" {
		directory = c.path("pool")
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("local: {node: %s, directory: %q}", c.nodeOf(0), directory), nil
}

// makeObjects creates all objects with the CLI; existing ones stay.
func (c *Cluster) makeObjects(ctx context.Context) error {
	pool, err := c.poolSpec()
	if err != nil {
		return err
	}
	var text strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&text, "---\napiVersion: sluice.dev/v1\nkind: %s\nmeta: {name: %s}\nspec: {%s}\n", kind, name, spec)
	}
	for _, fabric := range c.fabrics() {
		object("Fabric", fabric, "")
	}
	object("GatewayPool", "default", fmt.Sprintf("fabrics: [%s]", strings.Join(c.fabrics(), ", ")))
	for i := range c.Options.Gateways {
		var portals []string
		for on, listen := range c.Portals(i) {
			portals = append(portals, fmt.Sprintf("{fabric: %s, listen: %q}", c.fabrics()[on], listen))
		}
		object("Gateway", GatewayName(i), fmt.Sprintf("gatewayPool: default, node: %s, portals: [%s], forwardingAddress: %q",
			c.nodeOf(i), strings.Join(portals, ", "), c.ForwardingAddress(i)))
	}
	object("StoragePool", PoolName, pool)
	if c.OtherPool != "" {
		object("StoragePool", otherPoolName, fmt.Sprintf("local: {node: %s, directory: %q}", c.nodeOf(0), c.OtherPool))
	}
	var luns, hosts []string
	for i := range c.Volumes {
		object("Volume", VolumeName(i), fmt.Sprintf("pool: %s, sizeBytes: %d", c.poolOf(i), cmp.Or(c.VolumeMiB, volumeMiB)<<20))
		luns = append(luns, fmt.Sprintf("{id: %d, volume: %s}", i, VolumeName(i)))
	}
	for i := range MaxHosts {
		name := fmt.Sprintf("host-%d", i+1)
		object("Host", name, fmt.Sprintf("initiators: [\"%s%d\"], allowUnauthenticated: true", Initiator, i+1))
		hosts = append(hosts, name)
	}
	object("Target", targetName, fmt.Sprintf("iqn: %q, gatewayPool: default, paths: %d, luns: [%s], hosts: [%s]", Target,
		c.paths(), strings.Join(luns, ", "), strings.Join(hosts, ", ")))
	if err := os.WriteFile(c.path("objects.yaml"), []byte(text.String()), 0o600); err != nil {
		return err
	}
	_, err = c.Control(ctx, "apply", "-f", c.path("objects.yaml"))
	return err
}

const callTimeout = 3 * time.Second

// allVolumes returns all volumes. Each page may take callTimeout.
func (c *Cluster) allVolumes(ctx context.Context) ([]*pb.Volume, error) {
	list := func(ctx context.Context, request *pb.ListVolumesRequest, options ...grpc.CallOption) (*pb.ListVolumesResponse, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return c.volumes().ListVolumes(ctx, request, options...)
	}
	return client.Collect(client.All(ctx, list, &pb.ListVolumesRequest{}, (*pb.ListVolumesResponse).GetVolumes))
}

func (c *Cluster) allGateways(ctx context.Context) ([]*pb.Gateway, error) {
	return client.Collect(client.All(ctx, c.gateways().ListGateways, &pb.ListGatewaysRequest{}, (*pb.ListGatewaysResponse).GetGateways))
}

// listShare is the ratio of the pause between two lists of all volumes to the duration of a list.
const listShare = 4

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// paths returns the number of the target's paths, one through each gateway that exports it.
func (c *Cluster) paths() int {
	return min(cmp.Or(c.Paths, c.Options.Gateways), c.Options.Gateways)
}

// exported fails until every gateway of the path set serves the newest state of the target. The first ready gateways initially
// make a shorter set, and a login before a gateway has applied the target is refused.
func (c *Cluster) exported(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.targets().GetTarget(ctx, &pb.GetTargetRequest{Name: targetName})
	if err != nil {
		return err
	}
	applied := 0
	for _, path := range got.GetTarget().GetStatus().GetPaths() {
		if path.GetApplied() {
			applied++
		}
	}
	if applied < c.paths() {
		return fmt.Errorf("%d of %d gateways have applied the target", applied, c.paths())
	}
	return nil
}

// WaitReady returns once all gateways are Ready, the target has all its paths, and all volumes are Owned.
func (c *Cluster) WaitReady(ctx context.Context) error {
	err := netns.Until(ctx, func() error {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		gateways, err := c.allGateways(limited)
		if err != nil {
			return err
		}
		ready := 0
		for _, gateway := range gateways {
			if gateway.GetStatus().GetHealth() == pb.GatewayHealth_GATEWAY_HEALTH_READY {
				ready++
			}
		}
		if ready < c.Options.Gateways { // the list of all volumes would be useless now, and costly
			return fmt.Errorf("%d of %d gateways are ready", ready, c.Options.Gateways)
		}
		if err := c.exported(ctx); err != nil {
			return err
		}
		asked := time.Now()
		volumes, err := c.allVolumes(ctx)
		took := time.Since(asked)
		if err != nil {
			return err
		}
		owned := 0
		for _, volume := range volumes {
			if volume.GetStatus().GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED {
				owned++
			}
		}
		if owned < c.Volumes {
			pause(ctx, listShare*took)
			return fmt.Errorf("all gateways are ready, %d of %d volumes owned", owned, c.Volumes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.Logs(20))
	}
	return nil
}

// Owner returns the gateway, from 0, that owns a volume.
func (c *Cluster) Owner(ctx context.Context, volume int) (int, error) {
	return c.OwnerOf(ctx, VolumeName(volume))
}

// OwnerOf returns the gateway, from 0, that owns a volume of any name.
func (c *Cluster) OwnerOf(ctx context.Context, volume string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.volumes().GetVolume(ctx, &pb.GetVolumeRequest{Name: volume})
	if err != nil {
		return 0, err
	}
	gateways, err := c.allGateways(ctx)
	if err != nil {
		return 0, err
	}
	for i := range c.Options.Gateways {
		for _, gateway := range gateways {
			if gateway.GetMeta().GetName() == GatewayName(i) &&
				gateway.GetStatus().GetNumber() == got.GetVolume().GetStatus().GetOwnerGateway() {
				return i, nil
			}
		}
	}
	return 0, errors.New(volume + " has no owner")
}

// Owned returns the epoch of a volume whose owner serves it.
func (c *Cluster) Owned(ctx context.Context, volume int) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.volumes().GetVolume(ctx, &pb.GetVolumeRequest{Name: VolumeName(volume)})
	if err != nil {
		return 0, err
	}
	status := got.GetVolume().GetStatus()
	if status.GetOwnership() != pb.OwnershipState_OWNERSHIP_STATE_OWNED {
		return 0, fmt.Errorf("%s is %v", VolumeName(volume), status.GetOwnership())
	}
	return status.GetEpoch(), nil
}

// Move requests a planned move of a volume's ownership.
func (c *Cluster) Move(ctx context.Context, volume, gateway int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.volumes().MoveVolume(ctx, &pb.MoveVolumeRequest{Name: VolumeName(volume), Gateway: GatewayName(gateway)})
	return err
}

// Bring moves a volume to a gateway, if it is not there, and returns once it is served there.
func (c *Cluster) Bring(ctx context.Context, volume, gateway int) error {
	if at, err := c.Owner(ctx, volume); err == nil && at == gateway {
		return nil
	}
	if err := c.Move(ctx, volume, gateway); err != nil {
		return err
	}
	return netns.Until(ctx, func() error {
		at, err := c.Owner(ctx, volume)
		if err == nil && at != gateway {
			err = fmt.Errorf("%s is still with %s", VolumeName(volume), GatewayName(at))
		}
		if err == nil {
			_, err = c.Owned(ctx, volume)
		}
		return err
	})
}

// Drain requests that all volumes and paths leave a gateway; Undrain ends that.
func (c *Cluster) Drain(ctx context.Context, gateway int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.gateways().DrainGateway(ctx, &pb.DrainGatewayRequest{Name: GatewayName(gateway)})
	return err
}

// Undrain allows a gateway to take volumes again.
func (c *Cluster) Undrain(ctx context.Context, gateway int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.gateways().UndrainGateway(ctx, &pb.UndrainGatewayRequest{Name: GatewayName(gateway)})
	return err
}
