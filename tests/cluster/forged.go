package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/initiator"
)

// CopiedState is the content of a gateway's state directory that an attacker copied.
type CopiedState struct {
	Settings *pb.DesiredSettings
	Peers    map[uint32]*pb.DesiredPeer
}

// sealBytes is the size of the last line of a saved state, "crc32c 01234567" (gateway/src/base/record_text.h).
const sealBytes = 16

// CopyState reads the saved desired state of a gateway, from 0.
func (c *Cluster) CopyState(gateway int) (*CopiedState, error) {
	text, err := os.ReadFile(c.path(GatewayName(gateway)+".state", "desired-state"))
	if err != nil {
		return nil, err
	}
	message, found := bytes.CutPrefix(text, []byte("sluice-desired 2\n"))
	if len(message) < sealBytes || !found {
		return nil, errors.New("the saved state is not of version 2")
	}
	var update pb.StreamUpdate
	if err := proto.Unmarshal(message[:len(message)-sealBytes], &update); err != nil {
		return nil, err
	}
	state := &CopiedState{Peers: map[uint32]*pb.DesiredPeer{}}
	for _, object := range update.GetPut() {
		if peer := object.GetPeer(); peer != nil {
			state.Peers[peer.GetNumber()] = peer
		}
		if settings := object.GetSettings(); settings != nil {
			state.Settings = settings
		}
	}
	if state.Settings == nil {
		return nil, errors.New("the saved state has no settings")
	}
	return state, nil
}

// Forged is a login at a forwarding port.
type Forged struct {
	// Address is the forwarding port, Owner the peer that has it, with the attacker's knowledge.
	Address string
	Owner   *pb.DesiredPeer
	// Number and Incarnation of the gateway that the attacker claims to be.
	Number      uint32
	Incarnation string
	Key         *pb.ForwardingKey
	Initiator   string
}

// Login logs in as forwarding_wire.h describes.
func (f Forged) Login(ctx context.Context) error {
	secret := func(direction string) string {
		sum := sha256.New()
		sum.Write([]byte{0})
		sum.Write(f.Key.GetKey())
		sum.Write([]byte(direction))
		return string(sum.Sum(nil))
	}
	session, err := initiator.Login(ctx, initiator.Options{Portal: f.Address, Target: Target, Initiator: f.Initiator,
		ISID: [6]byte{0x80, 0, 0, 0x66},
		Keys: []string{fmt.Sprintf("X-dev.sluice.Origin=1,%d,%s,60001,60001,1,rw,%d,%s", f.Number, f.Incarnation,
			f.Owner.GetNumber(), f.Owner.GetIncarnation())},
		CHAP: &initiator.CHAP{User: f.Key.GetId(), Secret: secret("sluice forwarder"), MutualSecret: secret("sluice owner")}})
	if err == nil {
		session.Close()
	}
	return err
}
