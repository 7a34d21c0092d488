package join_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestTheControlPlaneDecidesOnTheIdentitiesInTheCertificatesOfAJoin(t *testing.T) {
	s := start(t)
	response := s.joins(&pb.JoinRequest{Token: s.token(), Node: "b", Gateways: []*pb.GatewayCertificateRequest{gatewayRequest(t, "b-1")},
		Member: &pb.MemberRequest{PeerAddress: "192.0.2.2:7467", CertificateRequest: certificateRequest(t), Hosts: []string{"b.example.org"}}})
	gateway := parsed(t, response.GetGateways()[0].GetCertificate())
	if gateway.Subject.String() != "CN=b-1,O=sluice:gateway" || len(certs.Hosts(gateway)) != 0 {
		t.Errorf("the gateway's certificate is of %s with %v", gateway.Subject, certs.Hosts(gateway))
	}
	server := parsed(t, response.GetMember().GetCertificate())
	want := []string{"b", "localhost", "b.example.org", "192.0.2.2", "127.0.0.1", "::1"}
	if server.Subject.String() != "CN="+certs.ServerName+",O=sluice:server" || !slices.Equal(certs.Hosts(server), want) {
		t.Errorf("the server's certificate is of %s with %v", server.Subject, certs.Hosts(server))
	}
	authority := parsed(t, response.GetAuthority())
	for _, certificate := range []error{gateway.CheckSignatureFrom(authority), server.CheckSignatureFrom(authority)} {
		if certificate != nil {
			t.Error(certificate)
		}
	}
	member := response.GetMember()
	if member.GetKeyFile() != s.ring.Text() || member.GetCluster() != "default" || response.GetSystemId() != s.Store.SystemID() ||
		!slices.Equal(member.GetPeerAddresses(), []string{"192.0.2.1:7467"}) || !slices.Equal(response.GetApiAddresses(), []string{"192.0.2.1:7460"}) {
		t.Errorf("the response is %v", response)
	}
}

func TestOnlyAMemberGetsTheCertificateOfAnAdministrator(t *testing.T) {
	s := start(t)
	request := &pb.JoinRequest{Token: s.token(), Node: "b", AdministratorCertificateRequest: certificateRequest(t)}
	if response := s.joins(request); response.GetAdministratorCertificate() != "" {
		t.Errorf("a server with gateways only got the certificate of %s", parsed(t, response.GetAdministratorCertificate()).Subject)
	}
	request.Member = &pb.MemberRequest{PeerAddress: "192.0.2.2:7467", CertificateRequest: certificateRequest(t)}
	response := s.joins(request)
	administrator := parsed(t, response.GetAdministratorCertificate())
	if err := administrator.CheckSignatureFrom(parsed(t, response.GetAuthority())); err != nil || administrator.Subject.String() != "CN=admin@b,O=sluice:admin" {
		t.Errorf("the certificate is of %s: %v", administrator.Subject, err)
	}
	request.AdministratorCertificateRequest = "text"
	_, err := s.join.Join(t.Context(), request)
	refused(t, err, codes.InvalidArgument, "administratorCertificateRequest")
	request.AdministratorCertificateRequest = ""
	if response := s.joins(request); response.GetAdministratorCertificate() != "" {
		t.Error("a server got a certificate that it did not ask for")
	}
}

func TestAServerWithoutAMemberRequestGetsNoKeys(t *testing.T) {
	s := start(t)
	response := s.joins(&pb.JoinRequest{Token: s.token(), Node: "b"})
	if response.GetMember() != nil || response.GetNoMemberReason() != "" || len(s.members.admitted) != 0 {
		t.Errorf("got %v", response)
	}
}

func TestAServerThatDoesNotBecomeAMemberGetsTheReasonAndNoKeys(t *testing.T) {
	request := func(s *system) *pb.JoinRequest {
		return &pb.JoinRequest{Token: s.token(), Node: "d", Gateways: []*pb.GatewayCertificateRequest{gatewayRequest(t, "d-1")},
			Member: &pb.MemberRequest{PeerAddress: "192.0.2.4:7467", CertificateRequest: certificateRequest(t)}}
	}
	for want, change := range map[string]func(*system){
		"has 3 members":              func(s *system) { s.members.refusal = etcd.ErrMembersFull },
		"without `serve --etcd-peer": func(s *system) { s.members.refusal = etcd.ErrNoPeering },
		"has an external etcd":       func(s *system) { s.join.Embedded = nil },
	} {
		s := start(t)
		change(s)
		response := s.joins(request(s))
		if response.GetMember() != nil || !strings.Contains(response.GetNoMemberReason(), want) || len(response.GetGateways()) != 1 {
			t.Errorf("got %v, want the reason %q", response, want)
		}
	}
	s := start(t)
	s.members.refusal = etcd.ErrNotNow
	_, err := s.join.Join(t.Context(), request(s))
	refused(t, err, codes.Unavailable, "do not permit the change at present")
	s.members.refusal = &etcd.MemberExistsError{Node: "d", Address: "192.0.2.4:7467"}
	_, err = s.join.Join(t.Context(), request(s))
	refused(t, err, codes.FailedPrecondition, "has data already")
}

// Only the server itself has the private key of its first join.
func TestAMemberThatHasStartedCanRepeatItsJoinWithTheSameKeyOnly(t *testing.T) {
	s := start(t)
	request := &pb.JoinRequest{Token: s.token(), Node: "b", Member: &pb.MemberRequest{PeerAddress: "192.0.2.2:7467", CertificateRequest: certificateRequest(t)}}
	s.joins(request)
	started := store.Server{Node: "b", PeerAddress: "192.0.2.2:7467", APIAddress: "192.0.2.2:7460"}
	if err := s.Store.SetServer(t.Context(), started); err != nil {
		t.Fatal(err)
	}
	s.members.present = append(s.members.present, etcd.Member{Node: "b", Address: "192.0.2.2:7467"})
	s.members.refusal = &etcd.MemberExistsError{Node: "b", Address: "192.0.2.2:7467"}
	for range 2 {
		if again := s.joins(request).GetMember(); !slices.Equal(again.GetPeerAddresses(), []string{"192.0.2.1:7467"}) || again.GetKeyFile() == "" {
			t.Errorf("the repetition gets %v", again)
		}
	}
	listed, err := s.ListMembers(t.Context(), &pb.ListMembersRequest{})
	if err != nil || listed.GetMembers()[1].GetApiAddress() != "192.0.2.2:7460" {
		t.Errorf("after the repetition the members are %v, %v", listed, err)
	}
	request.Member.CertificateRequest = certificateRequest(t)
	_, err = s.join.Join(t.Context(), request)
	refused(t, err, codes.FailedPrecondition, "has data already")
}

// The text is the same for all, so that it tells nothing about the valid tokens.
func TestATokenThatIsNotValidIsRefused(t *testing.T) {
	s := start(t)
	text := s.token()
	token, err := client.ParseJoinToken(text)
	if err != nil {
		t.Fatal(err)
	}
	other := client.NewJoinToken([]byte("another certificate"))
	wrongSecret, wrongAuthority := token, token
	wrongSecret.Secret, wrongAuthority.Authority = other.Secret, other.Authority
	for name, refusedToken := range map[string]client.JoinToken{"unknown": other, "wrong secret": wrongSecret, "other authority": wrongAuthority} {
		t.Run(name, func(t *testing.T) {
			_, err := s.join.Join(t.Context(), &pb.JoinRequest{Token: refusedToken.Text(), Node: "b"})
			refused(t, err, codes.Unauthenticated, "has ended, was revoked, or is another system's")
		})
	}
	_, err = s.join.Join(t.Context(), &pb.JoinRequest{Token: text[:40], Node: "b"})
	refused(t, err, codes.Unauthenticated, "copy it as a whole")
	s.now = s.now.Add(time.Hour - time.Second)
	s.joins(&pb.JoinRequest{Token: text, Node: "b"})
	s.joins(&pb.JoinRequest{Token: text, Node: "c"}) // several servers use one token
	s.now = s.now.Add(time.Second)
	_, err = s.join.Join(t.Context(), &pb.JoinRequest{Token: text, Node: "b"})
	refused(t, err, codes.Unauthenticated, "has ended")
	text = s.token()
	revoked, err := client.ParseJoinToken(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeJoinToken(t.Context(), &pb.RevokeJoinTokenRequest{Id: revoked.ID}); err != nil {
		t.Fatal(err)
	}
	_, err = s.join.Join(t.Context(), &pb.JoinRequest{Token: text, Node: "b"})
	refused(t, err, codes.Unauthenticated, "was revoked")
}

func TestAServerCannotTakeTheIdentityOfAnotherGateway(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	s.gateway("b-1", "other")
	asks := func(node string, gateways ...*pb.GatewayCertificateRequest) error {
		_, err := s.join.Join(ctx, &pb.JoinRequest{Token: s.token(), Node: node, Gateways: gateways})
		return err
	}
	refused(t, asks("b", gatewayRequest(t, "b-1")), codes.FailedPrecondition, "b-1 is a gateway of node other, and this server joins as node b")
	for _, name := range []string{"gw-1", "b", "b-", "b-0", "b-100", "b-1-1", "bb-1", "sluice-controlplane"} {
		refused(t, asks("b", gatewayRequest(t, name)), codes.InvalidArgument, "such as `b-1`")
	}
	refused(t, asks("b", gatewayRequest(t, "b-2"), gatewayRequest(t, "b-2")), codes.InvalidArgument, "named twice")

	// A gateway that has connected keeps the key of its join.
	if err := s.Store.Gateways.Create(ctx, &model.Gateway{Meta: model.Meta{Name: "c-1"}, Spec: model.GatewaySpec{GatewayPool: "default", Node: "c",
		ForwardingAddress: "192.0.2.3:3261", Portals: []model.Portal{{Listen: "192.0.2.3:3260", Fabric: "red"}}}}, false); err != nil {
		t.Fatal(err)
	}
	interrupted, first := gatewayRequest(t, "c-1"), gatewayRequest(t, "c-1")
	for _, request := range []*pb.GatewayCertificateRequest{interrupted, first} {
		if err := asks("c", request); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Modify(ctx, storetest.Lead(t, s.Store), "c-1", func(gateway *model.Gateway) (bool, error) {
		gateway.Status.Incarnation = model.NewUID()
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := asks("c", first); err != nil {
		t.Errorf("with its key: %v", err)
	}
	refused(t, asks("c", gatewayRequest(t, "c-1")), codes.FailedPrecondition, "c-1 has connected already, with another key")
}

func TestEveryWrongPartOfARequestToJoinIsNamed(t *testing.T) {
	s := start(t)
	request := certificateRequest(t)
	for want, asked := range map[string]*pb.JoinRequest{
		"node: must consist of":                         {Node: "B"},
		"gateways[0].certificateRequest: it is not PEM": {Node: "b", Gateways: []*pb.GatewayCertificateRequest{{Gateway: "b-1", CertificateRequest: "x"}}},
		"member.peerAddress: \"b\" is not host:port":    {Node: "b", Member: &pb.MemberRequest{PeerAddress: "b", CertificateRequest: request}},
		"names no host":                                 {Node: "b", Member: &pb.MemberRequest{PeerAddress: "0.0.0.0:1", CertificateRequest: request}},
		"member.certificateRequest: it is no certificate signing request": {Node: "b", Member: &pb.MemberRequest{PeerAddress: "b:1",
			CertificateRequest: s.file(certs.CAFile)}},
		"member.hosts[0]: \"a_b\" is neither": {Node: "b", Member: &pb.MemberRequest{PeerAddress: "b:1", CertificateRequest: request,
			Hosts: []string{"a_b"}}},
	} {
		asked.Token = s.token()
		_, err := s.join.Join(t.Context(), asked)
		refused(t, err, codes.InvalidArgument, want)
	}
	if len(s.members.admitted) != 0 {
		t.Error("a wrong request admitted a member")
	}
}
