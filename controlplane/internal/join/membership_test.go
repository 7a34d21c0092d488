package join_test

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestATokenIsValidForItsTimeAndWithoutOneForAnHour(t *testing.T) {
	s := start(t)
	for want, request := range map[time.Duration]*pb.CreateJoinTokenRequest{
		time.Hour: {}, 3 * time.Hour: {Ttl: durationpb.New(3 * time.Hour)}} {
		made, err := s.CreateJoinToken(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if end := made.GetExpireTime().AsTime(); !end.Equal(s.now.Add(want)) {
			t.Errorf("it ends at %v", end)
		}
		if !slices.Equal(made.GetJoinAddresses(), []string{"192.0.2.1:7468"}) {
			t.Errorf("servers join at %v", made.GetJoinAddresses())
		}
	}
	list := func() int {
		listed, err := s.ListJoinTokens(t.Context(), &pb.ListJoinTokensRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(listed.GetTokens())
	}
	if n := list(); n != 2 {
		t.Errorf("%d tokens are listed", n)
	}
	s.now = s.now.Add(2 * time.Hour)
	if n := list(); n != 1 {
		t.Errorf("after the end of one, %d tokens are listed", n)
	}
	_, err := s.RevokeJoinToken(t.Context(), &pb.RevokeJoinTokenRequest{Id: "absent"})
	refused(t, err, codes.NotFound, `"absent"`)
}

func TestWithoutAnAuthorityNothingIsSignedAndTheRemedyIsNamed(t *testing.T) {
	s := bare(t)
	_, err := s.CreateJoinToken(t.Context(), &pb.CreateJoinTokenRequest{})
	refused(t, err, codes.FailedPrecondition, "the store has no certificate authority")
	held := &x509.Certificate{}
	s.Role = func(context.Context) string { return "admin" }
	_, err = s.RenewCertificate(calledWith(t.Context(), held), &pb.RenewCertificateRequest{CertificateRequest: certificateRequest(t)})
	refused(t, err, codes.FailedPrecondition, "ImportAuthority")
}

func TestAnAuthorityIsStoredEncryptedAndOnlyWithItsKeyAndTheTrustOfTheControlPlane(t *testing.T) {
	s, other := bare(t), bare(t)
	mixed := s.authority()
	mixed.PrivateKey = other.file("ca.key")
	_, err := s.ImportAuthority(t.Context(), mixed)
	refused(t, err, codes.InvalidArgument, "privateKey: the private key is that of another certificate")
	mixed.Certificate = "x"
	_, err = s.ImportAuthority(t.Context(), mixed)
	refused(t, err, codes.InvalidArgument, "certificate: the certificate is not PEM")
	s.Trusts = func([]byte) error { return errors.New("--tls-ca lacks it") }
	_, err = s.ImportAuthority(t.Context(), s.authority())
	refused(t, err, codes.FailedPrecondition, "--tls-ca lacks it")
	s.Trusts = func([]byte) error { return nil }
	for range 2 {
		if _, err := s.ImportAuthority(t.Context(), s.authority()); err != nil {
			t.Fatal(err)
		}
	}
	_, key, err := s.Store.Authority(t.Context())
	if err != nil || key.Reveal() != s.file("ca.key") {
		t.Errorf("the stored key differs (%v)", err)
	}
}

func TestMembersAreListedWithTheirRecordsAndRemovedByTheirNode(t *testing.T) {
	s := start(t)
	s.members.present = []etcd.Member{{Address: "192.0.2.2:7467", Learner: true}, {Node: "a", Address: "192.0.2.1:7467", Reachable: true}}
	if err := s.Store.SetServer(t.Context(), store.Server{Node: "b", PeerAddress: "192.0.2.2:7467"}); err != nil {
		t.Fatal(err)
	}
	listed, err := s.ListMembers(t.Context(), &pb.ListMembersRequest{})
	if err != nil || len(listed.GetMembers()) != 2 {
		t.Fatalf("%v, %v", listed, err)
	}
	a, b := listed.GetMembers()[0], listed.GetMembers()[1]
	if a.GetNode() != "a" || a.GetRole() != pb.MemberRole_MEMBER_ROLE_VOTER || !a.GetReachable() || a.GetApiAddress() != "192.0.2.1:7460" {
		t.Errorf("the first is %v", a)
	}
	if b.GetNode() != "b" || b.GetRole() != pb.MemberRole_MEMBER_ROLE_LEARNER || b.GetReachable() || b.GetApiAddress() != "" {
		t.Errorf("the second, which never started, is %v", b)
	}
	_, err = s.RemoveMember(t.Context(), &pb.RemoveMemberRequest{Node: "c"})
	refused(t, err, codes.NotFound, `"c"`)
	for refusal, text := range map[error]string{etcd.ErrLastMember: "destroy the store", etcd.ErrNotNow: "unreachable"} {
		s.members.refusal = refusal
		_, err = s.RemoveMember(t.Context(), &pb.RemoveMemberRequest{Node: "b"})
		refused(t, err, codes.FailedPrecondition, text)
	}
	s.Embedded = nil
	_, err = s.ListMembers(t.Context(), &pb.ListMembersRequest{})
	refused(t, err, codes.FailedPrecondition, "external etcd")
}
