package cluster

import (
	"context"
	"fmt"

	"sluice.dev/sluice/tests/initiator"
)

// Login opens a session of a host, by its number from 1, to a gateway's portal on the red fabric.
func (c *Cluster) Login(ctx context.Context, number, gateway int) (*initiator.Session, error) {
	return initiator.Login(ctx, initiator.Options{Portal: c.Portals(gateway)[0], Target: Target,
		Initiator: fmt.Sprintf("%s%d", Initiator, number), ISID: [6]byte{0x80, 0, 0, 0, byte(number), byte(gateway)}})
}
