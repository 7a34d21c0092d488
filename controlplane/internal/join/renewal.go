package join

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// administratorOf begins the common name of the administrator's certificate of a member; the node follows.
const administratorOf = "admin@"

// RenewCertificate implements MembershipService.
func (m *Membership) RenewCertificate(ctx context.Context, request *pb.RenewCertificateRequest) (*pb.RenewCertificateResponse, error) {
	public, err := certs.ParseRequest(request.GetCertificateRequest())
	if err != nil {
		return nil, invalid("certificateRequest", err)
	}
	from, _ := peer.FromContext(ctx)
	info, secured := from.AuthInfo.(credentials.TLSInfo)
	if !secured || len(info.State.PeerCertificates) == 0 {
		return nil, status.Error(codes.PermissionDenied, "a connection without a certificate has none to renew")
	}
	present := info.State.PeerCertificates[0]
	if err := m.mayRenew(ctx, present); err != nil {
		return nil, err
	}
	signer, err := m.signer(ctx)
	if err != nil {
		return nil, err
	}
	leaf := certs.Leaf{CommonName: present.Subject.CommonName, Role: m.Role(ctx), Hosts: certs.Hosts(present)}
	signed, err := signer.Sign(leaf, public)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "certificate: %v", err)
	}
	return &pb.RenewCertificateResponse{Certificate: signed, Authority: signer.PEM()}, nil
}

// mayRenew refuses the certificates of gateways that were deleted and of members that were removed: they would otherwise keep an identity of
// the system without end.
func (m *Membership) mayRenew(ctx context.Context, present *x509.Certificate) error {
	switch node, ofNode := strings.CutPrefix(present.Subject.CommonName, administratorOf); {
	case m.Role(ctx) == "gateway":
		return m.isGateway(ctx, present)
	case m.Role(ctx) == "server":
		return m.isMember(ctx, "the server certificate of "+strings.Join(certs.Hosts(present), ", "), func(record store.Server) bool {
			host, _, _ := net.SplitHostPort(record.PeerAddress)
			return present.VerifyHostname(host) == nil && isOfJoin(present, record.PublicKey, record.Joined)
		})
	case ofNode:
		return m.isMember(ctx, "the certificate "+present.Subject.CommonName, func(record store.Server) bool {
			return record.Node == node && isOfJoin(present, record.AdministratorKey, record.Joined)
		})
	}
	return nil
}

func (m *Membership) isGateway(ctx context.Context, present *x509.Certificate) error {
	name := present.Subject.CommonName
	_, err := m.Store.Gateways.Get(ctx, name)
	var absent *store.NotFoundError
	if errors.As(err, &absent) {
		return status.Errorf(codes.FailedPrecondition, "there is no gateway %s: a deleted gateway does not get another certificate", name)
	}
	if err != nil {
		return api.StatusOf(err)
	}
	joined, err := m.Store.JoinedGateway(ctx, name)
	if err != nil {
		return api.StatusOf(err)
	}
	if !isOfJoin(present, joined.PublicKey, joined.Joined) {
		return status.Errorf(codes.FailedPrecondition, "the certificate is that of an earlier gateway %s, which was deleted: use the one that the "+
			"last join gave to %s", name, name)
	}
	return nil
}

// isMember returns an error unless a present member has a certificate. The replicas of an external etcd, and the only member without a
// listener, have no records: nothing of them was ever removed.
func (m *Membership) isMember(ctx context.Context, what string, has func(store.Server) bool) error {
	if m.Embedded == nil || m.Self.PeerAddress == "" {
		return nil
	}
	records, err := m.servers(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(records, has) {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "%s belongs to no present member: a removed member does not get another certificate. Join "+
		"again with a token (ListMembers lists the members)", what)
}

// isOfJoin reports whether a certificate has the key of a join, or was signed after it. The names of a removed server can be those of a later
// one. The zero time: the record has no join, or is of an earlier release.
func isOfJoin(present *x509.Certificate, key string, joined time.Time) bool {
	return certs.KeyFingerprint(present) == key || !certs.SignedAt(present).Before(joined)
}
