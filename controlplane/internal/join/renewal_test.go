package join_test

import (
	"context"
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// renews asks for another certificate of a role over a connection with a present one.
func (s *system) renews(role string, held *x509.Certificate) (*x509.Certificate, error) {
	s.t.Helper()
	s.Role = func(context.Context) string { return role }
	renewed, err := s.RenewCertificate(calledWith(s.t.Context(), held), &pb.RenewCertificateRequest{CertificateRequest: certificateRequest(s.t)})
	if err != nil {
		return nil, err
	}
	return parsed(s.t, renewed.GetCertificate()), nil
}

// held are the certificates that a join of node b gave.
type held struct{ server, administrator, gateway *x509.Certificate }

func (h held) byRole() map[string]*x509.Certificate {
	return map[string]*x509.Certificate{"server": h.server, "admin": h.administrator, "gateway": h.gateway}
}

// joinsAsMember lets node b join with keys of its own, as a member and with a gateway.
func (s *system) joinsAsMember() held {
	s.t.Helper()
	const address = "192.0.2.2:7467"
	response := s.joins(&pb.JoinRequest{Token: s.token(), Node: "b", AdministratorCertificateRequest: certificateRequest(s.t),
		Gateways: []*pb.GatewayCertificateRequest{gatewayRequest(s.t, "b-1")},
		Member:   &pb.MemberRequest{PeerAddress: address, CertificateRequest: certificateRequest(s.t)}})
	s.members.present = append(s.members.present, etcd.Member{Node: "b", Address: address, Reachable: true})
	return held{parsed(s.t, response.GetMember().GetCertificate()), parsed(s.t, response.GetAdministratorCertificate()),
		parsed(s.t, response.GetGateways()[0].GetCertificate())}
}

// removes removes node b with its gateway.
func (s *system) removes() {
	s.t.Helper()
	if _, err := s.RemoveMember(s.t.Context(), &pb.RemoveMemberRequest{Node: "b"}); err != nil {
		s.t.Fatal(err)
	}
	s.members.present = s.members.present[:1]
	gateway, err := s.Store.Gateways.Delete(s.t.Context(), "b-1", store.DeleteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	storetest.During(s.t, s.Store, func(term *store.Term) {
		if err := term.Remove(s.t.Context(), gateway); err != nil {
			s.t.Fatal(err)
		}
	})
}

func TestACertificateIsRenewedForTheIdentityOfItsHolder(t *testing.T) {
	s := start(t)
	b := s.joinsAsMember()
	_, err := s.renews("gateway", b.gateway)
	refused(t, err, codes.FailedPrecondition, "there is no gateway b-1")
	s.gateway("b-1", "b")
	for role, present := range b.byRole() {
		for range 2 { // the second time with a key that the join did not see
			next, err := s.renews(role, present)
			if err != nil {
				t.Fatalf("%s: %v", role, err)
			}
			if next.Subject.String() != present.Subject.String() || !slices.Equal(certs.Hosts(next), certs.Hosts(present)) ||
				next.SerialNumber.Cmp(present.SerialNumber) == 0 {
				t.Errorf("%s: the certificate is of %s with %v", role, next.Subject, certs.Hosts(next))
			}
			present = next
		}
	}
}

func TestARemovedMemberGetsNoFurtherCertificateOfAnyKind(t *testing.T) {
	s := start(t)
	former := s.joinsAsMember()
	s.gateway("b-1", "b")
	s.removes()
	for role, text := range map[string]string{"server": "a removed member", "admin": "admin@b belongs to no present member", "gateway": "no gateway b-1"} {
		_, err := s.renews(role, former.byRole()[role])
		refused(t, err, codes.FailedPrecondition, text)
	}
}

// The names and addresses in the certificates of both servers are the same.
func TestTheCertificatesOfARemovedMemberDoNotBecomeValidWithALaterMemberOfItsNameAndAddress(t *testing.T) {
	s := start(t)
	former := s.joinsAsMember()
	s.gateway("b-1", "b")
	s.removes()
	for _, certificate := range former.byRole() {
		certificate.NotBefore = certificate.NotBefore.Add(-time.Second) // it was signed earlier than those of the later join
	}
	later := s.joinsAsMember()
	if err := s.Store.Gateways.Create(t.Context(), gatewayOf("b-1", "b"), false); err != nil {
		t.Fatal(err)
	}
	for role, text := range map[string]string{"server": "a removed member", "admin": "admin@b belongs to no present member",
		"gateway": "an earlier gateway b-1"} {
		_, err := s.renews(role, former.byRole()[role])
		refused(t, err, codes.FailedPrecondition, text)
		if _, err := s.renews(role, later.byRole()[role]); err != nil {
			t.Errorf("the later %s: %v", role, err)
		}
	}
}

// A system of an earlier release has records without keys and times. The founder has no join.
func TestCertificatesOfMembersWithoutARecordedJoinAreRenewed(t *testing.T) {
	s := start(t)
	b := s.joinsAsMember()
	s.gateway("b-1", "b")
	for _, err := range []error{s.Store.DeleteServer(t.Context(), "b"), s.Store.SetServer(t.Context(), store.Server{Node: "b", PeerAddress: "192.0.2.2:7467"}),
		s.Store.SetJoinedGateway(t.Context(), "b-1", store.JoinedGateway{Node: "b", PublicKey: "another"})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for role, present := range b.byRole() {
		if _, err := s.renews(role, present); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
	elsewhere := b.server
	elsewhere.IPAddresses, elsewhere.DNSNames = nil, []string{"b"}
	_, err := s.renews("server", elsewhere)
	refused(t, err, codes.FailedPrecondition, "belongs to no present member")
}

// Where an external etcd has the store, the control plane knows no members.
func TestServerCertificatesOfReplicasOfAnExternalEtcdAreRenewed(t *testing.T) {
	s := start(t)
	b := s.joinsAsMember()
	s.Embedded = nil
	if _, err := s.renews("server", b.server); err != nil {
		t.Error(err)
	}
}
