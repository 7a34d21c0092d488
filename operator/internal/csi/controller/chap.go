package controller

import (
	"context"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// labelCHAP of a Host that the driver created is chapGenerated if the secret is derived from the node's key. Without the label, the Host
// has the credentials of a class's Secret, or none.
const (
	labelCHAP     = attachment.Driver + "/chap"
	chapGenerated = "generated"
)

func generation(host *pb.Host) string { return host.GetMeta().GetLabels()[labelCHAP] }

// admission describes how a node is admitted.
type admission struct {
	// host is the name of its Host.
	host string
	// driverKey is the driver's public key if the node derives its secret; else empty.
	driverKey string
}

// authenticate sets the credentials of a Host that the driver made: those of the class's Secret, or those that the node also
// derives.
func (s *Service) authenticate(host *pb.Host, node attachment.Node, given attachment.CHAP) (admission, error) {
	admitted := admission{host: host.GetMeta().GetName()}
	if given.Own != nil {
		if generation(host) == chapGenerated {
			return admission{}, precondition("node %s logs in with a secret of its own, and the volume's class names a CHAP Secret: a node has "+
				"one secret for all volumes; drain the node before it gets volumes of such a class", node.Name)
		}
		setCHAP(host.GetSpec(), given)
		return admitted, nil
	}
	if node.Key == "" {
		return admission{}, unkeyed(node)
	}
	chap, err := attachment.NodeCHAP(s.key, node)
	if err != nil {
		return admission{}, invalid("%s", err)
	}
	setCHAP(host.GetSpec(), chap)
	if host.Meta.Labels == nil {
		host.Meta.Labels = map[string]string{}
	}
	host.Meta.Labels[labelCHAP] = chapGenerated
	admitted.driverKey = attachment.EncodePublicKey(s.key.PublicKey())
	return admitted, nil
}

// unkeyed refuses a node that could not authenticate. The attacher repeats the call.
func unkeyed(node attachment.Node) error {
	return status.Errorf(codes.Unavailable, "node %s has announced no CHAP key: its plugin is older than the controller, is about to register "+
		"again, or its names are too long for a key (node name and initiator name of at most %d bytes); or set the class's CHAP Secret",
		node.Name, attachment.MaxNamesWithKey)
}

// updateUnauthenticated handles a Host without credentials, which an older release of the driver made. While a target names it,
// the node has sessions without CHAP, and iscsid could not restore a broken one if the Host required CHAP. Such a Host stays
// unchanged until its last volume leaves. A Host that no target names is deleted, and created again with credentials.
func (s *Service) updateUnauthenticated(ctx context.Context, host *pb.Host, node attachment.Node) (admission, error) {
	name := host.GetMeta().GetName()
	if err := leftovers.ReleaseHost(ctx, s.hosts, host); err != nil {
		return admission{}, err
	}
	_, err := s.hosts.GetHost(ctx, &pb.GetHostRequest{Name: name})
	if err != nil {
		return admission{}, err // NotFound: the caller starts again
	}
	slog.WarnContext(ctx, "the node logs in without CHAP until its last volume leaves: drain it to change that", "node", node.Name, "host", name)
	return admission{host: name}, nil
}
