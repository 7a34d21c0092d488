package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/certs"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Such a certificate would be valid for every gateway.
func TestACertificateOfAGatewayThatNamesNoneIsRefusedWithTheRemedy(t *testing.T) {
	s := start(t)
	authority, err := certs.OpenAuthority(s.certs)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(certs.Leaf{File: "nameless", Role: "gateway"}); err != nil {
		t.Fatal(err)
	}
	// This holds for any method: the caller is identified first.
	_, err = pb.NewFabricServiceClient(s.as("nameless")).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	wantCode(t, err, codes.PermissionDenied)
	if why := status.Convert(err).Message(); !strings.Contains(why, "its common name has to be the name of its Gateway") {
		t.Errorf("it receives %q", why)
	}
}
