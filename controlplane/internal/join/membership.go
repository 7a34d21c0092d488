package join

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// defaultTTL is the validity of a token without another one.
const defaultTTL = time.Hour

// Membership serves MembershipService.
type Membership struct {
	pb.UnimplementedMembershipServiceServer
	Options
}

// CreateJoinToken implements MembershipService.
func (m *Membership) CreateJoinToken(ctx context.Context, request *pb.CreateJoinTokenRequest) (*pb.CreateJoinTokenResponse, error) {
	signer, err := m.signer(ctx)
	if err != nil {
		return nil, err
	}
	token := client.NewJoinToken(signer.Raw())
	hash := sha256.Sum256([]byte(token.Secret))
	stored, err := m.Store.AddJoinToken(ctx, store.JoinToken{ID: token.ID, Hash: hash[:]}, cmp.Or(request.GetTtl().AsDuration(), defaultTTL))
	if err != nil {
		return nil, api.StatusOf(err)
	}
	response := &pb.CreateJoinTokenResponse{Token: token.Text(), Id: token.ID, ExpireTime: timestamppb.New(stored.Expires)}
	servers, err := m.servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		if server.JoinAddress != "" {
			response.JoinAddresses = append(response.JoinAddresses, server.JoinAddress)
		}
	}
	return response, nil
}

// servers returns the records of the present members, and that of this server first if there are no members.
func (o *Options) servers(ctx context.Context) ([]store.Server, error) {
	if o.Embedded == nil {
		return []store.Server{o.Self}, nil
	}
	members, err := o.Embedded.Members(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	records, err := o.Store.Servers(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	if o.Self.PeerAddress == "" { // the only member
		return []store.Server{o.Self}, nil
	}
	return slices.DeleteFunc(records, func(record store.Server) bool {
		return !slices.ContainsFunc(members, func(member etcd.Member) bool { return member.Address == record.PeerAddress })
	}), nil
}

// ListJoinTokens implements MembershipService.
func (m *Membership) ListJoinTokens(ctx context.Context, _ *pb.ListJoinTokensRequest) (*pb.ListJoinTokensResponse, error) {
	tokens, err := m.Store.JoinTokens(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	response := &pb.ListJoinTokensResponse{}
	for _, token := range tokens {
		response.Tokens = append(response.Tokens, &pb.JoinToken{Id: token.ID, CreateTime: timestamppb.New(token.Created),
			ExpireTime: timestamppb.New(token.Expires)})
	}
	return response, nil
}

// RevokeJoinToken implements MembershipService.
func (m *Membership) RevokeJoinToken(ctx context.Context, request *pb.RevokeJoinTokenRequest) (*pb.RevokeJoinTokenResponse, error) {
	found, err := m.Store.DeleteJoinToken(ctx, request.GetId())
	if err != nil {
		return nil, api.StatusOf(err)
	}
	if !found {
		return nil, status.Errorf(codes.NotFound, "no valid token has the id %q: ListJoinTokens lists the valid tokens", request.GetId())
	}
	return &pb.RevokeJoinTokenResponse{}, nil
}

// ListMembers implements MembershipService.
func (m *Membership) ListMembers(ctx context.Context, _ *pb.ListMembersRequest) (*pb.ListMembersResponse, error) {
	members, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.ListMembersResponse{Members: members}, nil
}

// list returns the members with what their records add.
func (m *Membership) list(ctx context.Context) ([]*pb.Member, error) {
	if m.Embedded == nil {
		return nil, errExternal
	}
	members, err := m.Embedded.Members(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	records, err := m.Store.Servers(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	var all []*pb.Member
	for _, member := range members {
		listed := &pb.Member{Node: member.Node, PeerAddress: member.Address, Role: pb.MemberRole_MEMBER_ROLE_VOTER, Reachable: member.Reachable}
		if member.Learner {
			listed.Role = pb.MemberRole_MEMBER_ROLE_LEARNER
		}
		record := m.Self
		if i := slices.IndexFunc(records, func(r store.Server) bool { return r.PeerAddress == member.Address }); i >= 0 {
			record = records[i]
		}
		if record.PeerAddress == member.Address { // that of this server has none if it is the only member
			listed.ApiAddress = record.APIAddress
			listed.Node = cmp.Or(listed.Node, record.Node)
		}
		all = append(all, listed)
	}
	slices.SortFunc(all, func(a, b *pb.Member) int {
		return cmp.Or(cmp.Compare(a.GetNode(), b.GetNode()), cmp.Compare(a.GetPeerAddress(), b.GetPeerAddress()))
	})
	return all, nil
}

var errExternal = status.Error(codes.FailedPrecondition,
	"the store is an external etcd (--etcd-endpoints): its own tools list and change its members, such as `etcdctl member list`")

// RemoveMember implements MembershipService.
func (m *Membership) RemoveMember(ctx context.Context, request *pb.RemoveMemberRequest) (*pb.RemoveMemberResponse, error) {
	members, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(members, func(member *pb.Member) bool { return member.GetNode() == request.GetNode() })
	if i < 0 {
		return nil, status.Errorf(codes.NotFound, "no member has the node %q", request.GetNode())
	}
	err = m.Embedded.Remove(ctx, members[i].GetPeerAddress())
	if errors.Is(err, etcd.ErrNotNow) {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err != nil {
		return nil, statusOf(err)
	}
	m.Log.Warn("a member of the embedded etcd was removed", "node", request.GetNode(), "address", members[i].GetPeerAddress())
	// If this was the own member, its etcd may have stopped already. The record of no member has no effect.
	_ = m.Store.DeleteServer(ctx, request.GetNode())
	return &pb.RemoveMemberResponse{}, nil
}

// ImportAuthority implements MembershipService.
func (m *Membership) ImportAuthority(ctx context.Context, request *pb.ImportAuthorityRequest) (*pb.ImportAuthorityResponse, error) {
	if _, err := certs.ParseAuthority([]byte(request.GetCertificate())); err != nil {
		return nil, invalid("certificate", err)
	}
	signer, err := certs.ParseSigner([]byte(request.GetCertificate()), []byte(request.GetPrivateKey()))
	if err != nil {
		return nil, invalid("privateKey", err)
	}
	if err := m.Trusts(signer.Raw()); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err := m.Store.SetAuthority(ctx, signer.PEM(), model.NewSecret(request.GetPrivateKey())); err != nil {
		return nil, api.StatusOf(err)
	}
	return &pb.ImportAuthorityResponse{CertificateSha256: signer.Fingerprint()}, nil
}

func invalid(field string, err error) error {
	var wrong model.Violations
	wrong.Add(field, err.Error())
	return api.StatusOf(wrong.Err())
}
