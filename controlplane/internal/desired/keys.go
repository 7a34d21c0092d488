package desired

import (
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// sharesKeys reports whether a gateway that may forward has no pairwise keys, so that the others must accept the shared keys. A
// dead gateway is fenced; it counts again once it is connected.
func sharesKeys(o *objects.Objects) bool {
	for _, gateway := range o.Gateways {
		s := gateway.Status
		if s.Incarnation != "" && !s.PairwiseKeys && s.Health != model.GatewayDead {
			return true
		}
	}
	return false
}

// pairKeys adds the keys between the gateway and a peer, of every accepted generation.
func (m *maker) pairKeys(message *pb.DesiredPeer, peer model.GatewayRef) {
	for _, root := range m.roots {
		message.AcceptedKeys = append(message.AcceptedKeys, keyMessage(model.PairKey(root, peer, m.self)))
		message.OwnKeys = append(message.OwnKeys, keyMessage(model.PairKey(root, m.self, peer)))
	}
}

func keyMessage(key model.ForwardingKey) *pb.ForwardingKey {
	return &pb.ForwardingKey{Id: key.ID, Key: []byte(key.Key.Reveal())}
}
