package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons for which a process does not become the gateway that it names. The condition Refused and the event use them.
const (
	reasonAnotherSystem  = "AnotherSystem"
	reasonUnknownVolumes = "UnknownVolumes"
	reasonWrongNode      = "WrongNode"
	reasonPortsInUse     = "PortsInUse"
	reasonAdmitted       = "Admitted"
)

// capabilityReady of a hello: the process answers a welcome with StreamReady.
const capabilityReady = "ready"

// maxInUse bounds the addresses of a StreamReady that are shown to users: all portals and the forwarding port.
const maxInUse = model.MaxPortals + 1

// refusal is the reason why a process does not become a gateway.
type refusal struct{ reason, message string }

// contradiction compares the hello of a process with the gateway's object and the store; nil: they agree.
func (s *Service) contradiction(hello *pb.StreamHello, gateway *model.Gateway) *refusal {
	system, known := hello.GetSystemId(), hello.GetKnownVolumes()
	switch own := s.options.Store.SystemID(); {
	case system != "" && system != own:
		return &refusal{reasonAnotherSystem, fmt.Sprintf("the gateway belongs to system %.64s and knows %d volumes, and this control plane's store "+
			"belongs to system %s: nothing is assigned to the gateway. Restore the backup of the gateway's system, or name the right "+
			"--control-plane; to have the gateway change its system: `sluice-gateway accept-system %s` on its node", system, known, own, own)}
	case system == "" && known > 0 && s.hasNoVolumes():
		return &refusal{reasonUnknownVolumes, fmt.Sprintf("the gateway knows %d volumes, and the store has none: nothing is assigned to the gateway. "+
			"Restore the backup; if the store is new on purpose: `sluice-gateway accept-system %s` on the gateway's node", known, own)}
	}
	if node := hello.GetNode(); node != "" && node != gateway.Spec.Node {
		return &refusal{reasonWrongNode, fmt.Sprintf("the process runs on node %.253q, and gateway %s is of node %q: start it there, or change "+
			"spec.node", node, gateway.Meta.Name, gateway.Spec.Node)}
	}
	return nil
}

func (s *Service) hasNoVolumes() bool {
	empty := false
	s.options.View.Read(func(o *objects.Objects) { empty = len(o.Volumes) == 0 })
	return empty
}

// examine decides whether a process may become the gateway that its hello names. A process that supports it receives the addresses
// on which it must listen, and is welcome after it reports that it listens there.
func (s *Service) examine(stream pb.GatewayStreamService_ConnectServer, hello *pb.StreamHello, messages <-chan *pb.ConnectRequest,
	failed <-chan error,
) (welcome bool, err error) {
	ctx, cancel := context.WithTimeout(stream.Context(), storeTimeout)
	defer cancel()
	gateway, err := s.options.Store.Gateways.Get(ctx, hello.GetGateway())
	if err != nil {
		return false, connectStatus(hello.GetGateway(), err)
	}
	found := s.contradiction(hello, gateway)
	if found == nil && slices.Contains(hello.GetCapabilities(), capabilityReady) {
		welcome = true
		if found, err = s.portsOf(stream, gateway, messages, failed); err != nil {
			return welcome, err
		}
	}
	s.noteAdmission(stream.Context(), gateway, found)
	if found != nil {
		return welcome, status.Errorf(codes.FailedPrecondition, "gateway %s: %s", gateway.Meta.Name, found.message)
	}
	return welcome, nil
}

// portsOf welcomes a process and waits until it reports whether it could bind the ports of its gateway.
func (s *Service) portsOf(stream pb.GatewayStreamService_ConnectServer, gateway *model.Gateway, messages <-chan *pb.ConnectRequest,
	failed <-chan error,
) (*refusal, error) {
	welcome := s.newWelcome(gateway.Status.Number)
	welcome.AwaitsReady = true
	welcome.Listen = []string{model.CanonicalAddress(gateway.Spec.ForwardingAddress)}
	for _, portal := range gateway.Spec.Portals {
		welcome.Listen = append(welcome.Listen, model.CanonicalAddress(portal.Listen))
	}
	if err := stream.Send(&pb.ConnectResponse{Message: &pb.ConnectResponse_Welcome{Welcome: welcome}}); err != nil {
		return nil, err
	}
	timer := time.NewTimer(helloTimeout)
	defer timer.Stop()
	for {
		select {
		case message := <-messages:
			ready := message.GetReady()
			if ready == nil {
				continue // a heartbeat
			}
			used := ready.GetInUse()
			if len(used) == 0 {
				return nil, nil
			}
			return &refusal{reasonPortsInUse, fmt.Sprintf("another process on node %s listens on %.200q, where the gateway shall: it often is a "+
				"second sluice-gateway of this name. Stop one of the two", gateway.Spec.Node,
				strings.Join(used[:min(len(used), maxInUse)], ", "))}, nil
		case err := <-failed:
			return nil, err
		case <-timer.C:
			return nil, status.Errorf(codes.DeadlineExceeded, "not ready within %v", helloTimeout)
		case <-s.stop:
			return nil, status.Error(codes.Unavailable, "this replica is stopping: connect to another one")
		}
	}
}

func (s *Service) newWelcome(number uint32) *pb.StreamWelcome {
	return &pb.StreamWelcome{Number: number, Protocol: maxProtocol, Replica: s.options.Replica,
		HeartbeatIntervalMs: uint32(heartbeatInterval / time.Millisecond), SystemId: s.options.Store.SystemID()}
}

// noteAdmission stores in the gateway's condition Refused whether the last process with its name was refused, and records an
// event if that changes. A gateway that was never refused does not have the condition. It also stores when a process was last refused.
func (s *Service) noteAdmission(ctx context.Context, gateway *model.Gateway, found *refusal) {
	c := model.Condition{Type: model.ConditionRefused, Status: model.ConditionFalse, Reason: reasonAdmitted,
		ObservedGeneration: gateway.Meta.Generation}
	if found != nil {
		c.Status, c.Reason, c.Message = model.ConditionTrue, found.reason, found.message
		s.options.Log.Error("a process does not become the gateway that it names", "gateway", gateway.Meta.Name, "reason", found.reason,
			"problem", found.message)
	}
	changed := false
	put := func(g *model.Gateway) (bool, error) {
		known := slices.ContainsFunc(g.Status.Conditions, func(have model.Condition) bool { return have.Type == c.Type })
		now := time.Now()
		changed = (known || found != nil) && model.SetCondition(&g.Status.Conditions, c, now)
		again := found != nil && now.Sub(g.Status.LastRefused) >= model.RefusedAgain
		if again {
			g.Status.LastRefused = now.UTC()
		}
		return changed || again, nil
	}
	seen := *gateway
	seen.Status.Conditions = slices.Clone(gateway.Status.Conditions)
	if needed, _ := put(&seen); !needed { // usual case: nothing is stored
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.options.Store.NoteAdmission(ctx, gateway.Meta.Name, put); err != nil {
		s.options.Log.Warn("whether a gateway was refused could not be stored", "gateway", gateway.Meta.Name, "problem", err)
		return
	}
	if changed && s.options.Events != nil {
		if found != nil {
			s.options.Events.Record(ctx, gateway, true, found.reason, found.message)
		} else {
			s.options.Events.Record(ctx, gateway, false, reasonAdmitted, "a process has become the gateway")
		}
	}
}
