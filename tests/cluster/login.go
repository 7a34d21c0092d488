package cluster

import (
	"context"
	"fmt"

	"sluice.dev/sluice/tests/host"
)

// Login opens a session of a host, by its number from 1, to a gateway's portal on the red fabric.
func (c *Cluster) Login(ctx context.Context, number, gateway int) (*host.Session, error) {
	return host.Login(ctx, host.Options{Portal: c.Portals(gateway)[0], Target: Target,
		Initiator: fmt.Sprintf("%s%d", Initiator, number), ISID: [6]byte{0x80, 0, 0, 0, byte(number), byte(gateway)}})
}
