package controller

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxSessions of a node's Host: its targets, one for each pool, times their portals.
const maxSessions = 1024

func hostName(node string) string { return tidy("csi-", "csi."+node) }

// ensureHost returns the Host with the node's initiator name, and the credentials of the node's logins. The Host is one that
// users made, with their settings of fabrics, or one of the driver's.
func (s *Service) ensureHost(ctx context.Context, node attachment.Node, given attachment.CHAP) (admission, error) {
	for range casTries {
		host, err := s.hostOf(ctx, node)
		if err != nil {
			return admission{}, err
		}
		var admitted admission
		if host != nil {
			if why := hostKeptByResource(host, node); why != "" {
				return admission{}, precondition("%s", why)
			}
			admitted, err = s.updateHost(ctx, host, node, given)
		} else if host, err = s.ownHost(ctx, node); err == nil {
			admitted, err = s.renewHost(ctx, host, node, given)
		}
		if code := status.Code(err); code == codes.Aborted || code == codes.AlreadyExists || code == codes.NotFound {
			continue // another call created, changed or deleted it at the same time
		}
		return admitted, clientError(err)
	}
	return admission{}, status.Errorf(codes.Aborted, "the Host of node %s changes all the time; try again", node.Name)
}

// hostOf returns the Host that has the node's initiator name; nil: none.
func (s *Service) hostOf(ctx context.Context, node attachment.Node) (*pb.Host, error) {
	got, err := s.hosts.GetHost(ctx, &pb.GetHostRequest{Name: hostName(node.Name)})
	if err == nil && slices.Contains(got.GetHost().GetSpec().GetInitiators(), node.Initiator) {
		return got.GetHost(), nil
	}
	if err != nil && !absent(err) {
		return nil, clientError(err)
	}
	for host, err := range client.All(ctx, s.hosts.ListHosts, &pb.ListHostsRequest{}, (*pb.ListHostsResponse).GetHosts) {
		if err != nil {
			return nil, clientError(err)
		}
		if slices.Contains(host.GetSpec().GetInitiators(), node.Initiator) {
			return host, nil
		}
	}
	return nil, nil
}

// hostKeptByResource returns why a Host of the operator cannot represent a node: the resource may be in the namespace of any
// user, who could log in as the node with other credentials and access all its volumes.
func hostKeptByResource(host *pb.Host, node attachment.Node) string {
	labels := host.GetMeta().GetLabels()
	if labels[labelUID] == "" {
		return ""
	}
	return fmt.Sprintf("Host %s, which has node %s's initiator name %s, belongs to the Host resource %s, and every user who may change that "+
		"resource could log in as the node: delete the resource; if a Host of your own is needed, make it by `sluicectl host create`",
		host.GetMeta().GetName(), node.Name, node.Initiator, labels[labelResource])
}

// ownHost returns the node's stored Host, or a new one.
func (s *Service) ownHost(ctx context.Context, node attachment.Node) (*pb.Host, error) {
	got, err := s.hosts.GetHost(ctx, &pb.GetHostRequest{Name: hostName(node.Name)})
	if !absent(err) {
		return got.GetHost(), err
	}
	return &pb.Host{
		Meta: &pb.ObjectMeta{Name: hostName(node.Name), Labels: map[string]string{labelMadeBy: madeBy, labelNode: node.Name}},
		Spec: &pb.HostSpec{MaxSessions: maxSessions},
	}, nil
}

// renewHost stores the node's new initiator name in a Host of the driver: the node was reinstalled, and has no session.
func (s *Service) renewHost(ctx context.Context, host *pb.Host, node attachment.Node, given attachment.CHAP) (admission, error) {
	if host.GetMeta().GetLabels()[labelMadeBy] != madeBy {
		return admission{}, precondition("Host %s has another initiator name than node %s, %s, and was not made by %s: add the name to it",
			host.GetMeta().GetName(), node.Name, node.Initiator, madeBy)
	}
	host.Spec.Initiators = []string{node.Initiator}
	delete(host.GetMeta().GetLabels(), labelCHAP) // no session has the earlier secret
	admitted, err := s.authenticate(host, node, given)
	if err != nil {
		return admission{}, err
	}
	if host.GetMeta().GetUid() != "" {
		_, err = s.hosts.UpdateHost(ctx, &pb.UpdateHostRequest{Host: host})
	} else {
		_, err = s.hosts.CreateHost(ctx, &pb.CreateHostRequest{Host: host})
	}
	return admitted, err
}

// updateHost sets the credentials of a Host of the driver. A Host that users made keeps its own.
func (s *Service) updateHost(ctx context.Context, host *pb.Host, node attachment.Node, given attachment.CHAP) (admission, error) {
	admitted := admission{host: host.GetMeta().GetName()}
	if host.GetMeta().GetLabels()[labelMadeBy] != madeBy {
		return admitted, nil
	}
	if given.Own == nil && generation(host) != chapGenerated {
		if host.GetSpec().GetChap() != nil {
			return admitted, nil // from a class with a Secret: the node's sessions have those credentials
		}
		return s.updateUnauthenticated(ctx, host, node)
	}
	admitted, err := s.authenticate(host, node, given)
	if err != nil {
		return admission{}, err
	}
	_, err = s.hosts.UpdateHost(ctx, &pb.UpdateHostRequest{Host: host})
	return admitted, err
}

func setCHAP(spec *pb.HostSpec, chap attachment.CHAP) {
	if chap.Own == nil {
		return
	}
	spec.AllowUnauthenticated = false
	spec.Chap = &pb.ChapCredentials{Username: chap.Own.User, Password: chap.Own.Secret}
	spec.MutualChap = nil
	if chap.Mutual != nil {
		spec.MutualChap = &pb.ChapCredentials{Username: chap.Mutual.User, Password: chap.Mutual.Secret}
	}
}

// forget deletes a node's Host if the driver made it and no target names it. A node without volumes needs no Host, and may be
// gone permanently.
func (s *Service) forget(ctx context.Context, node attachment.Node) error {
	got, err := s.hosts.GetHost(ctx, &pb.GetHostRequest{Name: hostName(node.Name)})
	if absent(err) {
		return nil
	}
	if err != nil {
		return clientError(err)
	}
	return clientError(leftovers.ReleaseHost(ctx, s.hosts, got.GetHost()))
}
