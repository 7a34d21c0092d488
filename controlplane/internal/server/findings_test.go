package server_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (s *system) findings(request *pb.ListFindingsRequest) *pb.ListFindingsResponse {
	s.t.Helper()
	response, err := pb.NewFindingServiceClient(s.as("reader")).ListFindings(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

func (s *system) hosts(count int) {
	s.t.Helper()
	for i := range count {
		s.host(fmt.Sprintf("h-%03d", i))
	}
}

// host creates a host that needs no authentication, which is a finding.
func (s *system) host(name string) {
	s.t.Helper()
	host := &model.Host{Meta: model.Meta{Name: name}, Spec: model.HostSpec{AllowUnauthenticated: true,
		Initiators: []string{"iqn.2026-11.org.example:" + name}, MaxSessions: 1}}
	if err := s.store.Hosts.Create(s.t.Context(), host, false); err != nil {
		s.t.Fatal(err)
	}
}

func TestEqualFaultsAreOneFindingWhoseObjectsAreCountedAndBounded(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(343)
	found := s.findings(&pb.ListFindingsRequest{Kind: "Host"}).GetFindings()
	if len(found) != 1 || found[0].GetObjectCount() != 343 || len(found[0].GetObjects()) != 100 || found[0].GetObject().GetName() != "h-000" {
		t.Fatalf("%v", found)
	}
	f := found[0]
	if f.GetId() != "HostUnauthenticated" || f.GetSeverity() != pb.FindingSeverity_FINDING_SEVERITY_ADVICE || f.GetCause() == "" ||
		f.GetRemedy() == "" || f.GetLink() != "docs/RUNBOOK.md#hostunauthenticated" || f.GetStartTime().AsTime().IsZero() {
		t.Errorf("%v", f)
	}
}

func TestFindingsOfEachObjectComeInPages(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(7)
	seen, token := map[string]bool{}, ""
	for pages := 0; ; pages++ {
		page := s.findings(&pb.ListFindingsRequest{EachObject: true, Kind: "Host", PageSize: 3, PageToken: token})
		for _, f := range page.GetFindings() {
			seen[f.GetObject().GetName()] = true
		}
		if len(page.GetFindings()) > 3 || pages > 3 {
			t.Fatalf("page %d has %d findings", pages, len(page.GetFindings()))
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if len(seen) != 7 {
		t.Errorf("%v", seen)
	}
}

func TestAPageOfFindingsWithoutASizeHasFiveHundred(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(501)
	page := s.findings(&pb.ListFindingsRequest{EachObject: true, Kind: "Host"})
	if len(page.GetFindings()) != 500 || page.GetNextPageToken() == "" {
		t.Errorf("a page of %d, token %q", len(page.GetFindings()), page.GetNextPageToken())
	}
}

func TestFindingsAreSelectedBySeverityAndName(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(2)
	for what, c := range map[string]struct {
		request *pb.ListFindingsRequest
		wanted  int
	}{
		"all":           {&pb.ListFindingsRequest{}, 2}, // of the control plane, and of both hosts
		"warnings":      {&pb.ListFindingsRequest{MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_WARNING}, 0},
		"one host":      {&pb.ListFindingsRequest{Name: "h-001"}, 1},
		"another kind":  {&pb.ListFindingsRequest{Kind: "volume"}, 0},
		"kind in lower": {&pb.ListFindingsRequest{Kind: "host", EachObject: true}, 2},
	} {
		if found := s.findings(c.request).GetFindings(); len(found) != c.wanted {
			t.Errorf("%s: %v", what, found)
		}
	}
}

func TestARequestForFindingsIsCheckedAndNeedsARoleThatReads(t *testing.T) {
	s := start(t)
	list := func(who string, request *pb.ListFindingsRequest) error {
		_, err := pb.NewFindingServiceClient(s.as(who)).ListFindings(t.Context(), request)
		return err
	}
	wantCode(t, list("reader", &pb.ListFindingsRequest{}), codes.Unavailable) // the view has not read everything yet
	s.follow()
	wantCode(t, list("gateway", &pb.ListFindingsRequest{}), codes.PermissionDenied)
	wantCode(t, list("reader", &pb.ListFindingsRequest{PageToken: "x"}), codes.InvalidArgument)
	wantCode(t, list("reader", &pb.ListFindingsRequest{MinSeverity: 9}), codes.InvalidArgument)
	wantCode(t, list("reader", &pb.ListFindingsRequest{PageSize: -1}), codes.InvalidArgument)
}
