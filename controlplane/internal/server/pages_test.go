package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// lists has the calls of three implementations of a list: of objects, of sessions and of events. Each returns the number of
// elements, the next page's token and the error.
func (s *system) lists() map[string]func(*pb.ListOptions) (int, string, error) {
	admin, ctx := s.as("admin"), s.t.Context()
	return map[string]func(*pb.ListOptions) (int, string, error){
		"fabrics": func(options *pb.ListOptions) (int, string, error) {
			page, err := pb.NewFabricServiceClient(admin).ListFabrics(ctx, &pb.ListFabricsRequest{Options: options})
			return len(page.GetFabrics()), page.GetNextPageToken(), err
		},
		"sessions": func(options *pb.ListOptions) (int, string, error) {
			page, err := pb.NewSessionServiceClient(admin).ListSessions(ctx, &pb.ListSessionsRequest{Options: options})
			return len(page.GetSessions()), page.GetNextPageToken(), err
		},
		"events": func(options *pb.ListOptions) (int, string, error) {
			page, err := pb.NewEventServiceClient(admin).ListEvents(ctx, &pb.ListEventsRequest{Options: options})
			return len(page.GetEvents()), page.GetNextPageToken(), err
		},
	}
}

// fill creates this number of fabrics (with fabric red), sessions and events.
func (s *system) fill(count int) {
	s.t.Helper()
	ctx := s.t.Context()
	s.shortest()
	var sessions []*model.Session
	events := store.NewEventLog(s.store)
	for i := range count {
		name := fmt.Sprintf("f-%d", i)
		sessions = append(sessions, &model.Session{Gateway: "gw-1", TSIH: uint32(i + 1), ISID: "000000000001"})
		if i == 0 {
			continue // fabric red
		}
		if err := s.store.Fabrics.Create(ctx, &model.Fabric{Meta: model.Meta{Name: name}}, false); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range count {
		if err := events.Record(ctx, model.Event{Object: model.KindVolume, Name: fmt.Sprint(i), Reason: "Moved"}); err != nil {
			s.t.Fatal(err)
		}
	}
	// It connects now because nothing renews the lease, which may expire while the objects above are stored.
	connection, err := s.store.ConnectGateway(ctx, "gw-1", model.GatewayConnection{Ref: model.GatewayRef{Incarnation: "i"}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := connection.StoreSessions(ctx, true, sessions, nil); err != nil {
		s.t.Fatal(err)
	}
}

func TestAPageWithoutASizeHasFiveHundredOfAllElements(t *testing.T) {
	s := start(t)
	s.fill(501)
	for what, list := range s.lists() {
		count, token, err := list(nil)
		if err != nil || count != 500 || token == "" {
			t.Errorf("%s: a page of %d, token %q, %v", what, count, token, err)
		}
		count, token, err = list(&pb.ListOptions{PageToken: token})
		if err != nil || count != 1 || token != "" {
			t.Errorf("%s: a second page of %d, token %q, %v", what, count, token, err)
		}
	}
}

func TestAPageTokenThatNoListMadeIsRefused(t *testing.T) {
	s := start(t)
	s.fill(3)
	lists, tokens := s.lists(), map[string]string{}
	for what, list := range lists {
		_, token, err := list(&pb.ListOptions{PageSize: 1})
		if err != nil || token == "" {
			t.Fatalf("%s: token %q, %v", what, token, err)
		}
		tokens[what] = token
	}
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for what, list := range lists {
		refused := map[string]string{"text": "forged", "a number": "1", "base64": encoded("forged"),
			"a version of the future": encoded(fmt.Sprintf("%d Fabric red", int64(1)<<40)), "no version": encoded("0 Fabric red"),
			"a token of volumes": encoded("1 Volume red")}
		for of, token := range tokens {
			if of != what {
				refused["a token of "+of] = token
			}
		}
		for kind, token := range refused {
			t.Run(what+", "+kind, func(t *testing.T) {
				_, _, err := list(&pb.ListOptions{PageToken: token})
				wantField(t, err, codes.InvalidArgument, "options.pageToken")
			})
		}
		if _, _, err := list(&pb.ListOptions{PageToken: tokens[what]}); err != nil {
			t.Errorf("%s refuses its own token: %v", what, err)
		}
	}
}

func TestEventsAreOfAllObjectsOrOfAKindOrOfAName(t *testing.T) {
	s := start(t)
	events := store.NewEventLog(s.store)
	for _, event := range []model.Event{{Object: model.KindVolume, Name: "a"}, {Object: model.KindVolume, Name: "b"},
		{Object: model.KindHost, Name: "a"}} {
		event.Reason = "Moved"
		if err := events.Record(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	client := pb.NewEventServiceClient(s.as("admin"))
	for filter, want := range map[[2]string][]string{
		{"", ""}: {"Volume a", "Volume b", "Host a"}, {"Volume", ""}: {"Volume a", "Volume b"},
		{"Volume", "a"}: {"Volume a"}, {"", "a"}: {"Volume a", "Host a"}, {"Target", ""}: nil,
	} {
		page, err := client.ListEvents(t.Context(), &pb.ListEventsRequest{Kind: filter[0], Name: filter[1]})
		if err != nil {
			t.Fatal(err)
		}
		var listed, watched []string
		for _, event := range page.GetEvents() {
			listed = append(listed, event.GetKind()+" "+event.GetName())
		}
		if !slices.Equal(listed, want) {
			t.Errorf("filter %q lists %q, not %q", filter, listed, want)
		}
		// A watch from version 0 sends the same, and nothing else: no RESET and no bookmark.
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.WatchEvents(ctx, &pb.WatchEventsRequest{Kind: filter[0], Name: filter[1]})
		for range want {
			var response *pb.WatchEventsResponse
			if err == nil {
				response, err = stream.Recv()
			}
			watched = append(watched, response.GetEvent().GetKind()+" "+response.GetEvent().GetName())
		}
		cancel()
		if err = errors.Join(err); err != nil || !slices.Equal(watched, want) {
			t.Errorf("filter %q watches %q, not %q (%v)", filter, watched, want, err)
		}
	}
}

// A client accepts messages of 4 MiB, unless it asks for more: this one does not.
func TestAListOfLargeObjectsComesInPagesThatEveryClientAccepts(t *testing.T) {
	s := start(t)
	s.follow()
	labels := map[string]string{}
	for i := range model.MaxLabels - 4 {
		labels[fmt.Sprintf("key-%d", i)] = strings.Repeat("v", model.MaxLabelValue)
	}
	const count = 120 // of about 60 KiB
	for i := range count {
		host := &model.Host{Meta: model.Meta{Name: fmt.Sprintf("h-%03d", i), Labels: labels}, Spec: model.HostSpec{AllowUnauthenticated: true,
			Initiators: []string{fmt.Sprintf("iqn.2026-11.org.example:%d", i)}, MaxSessions: 1}}
		if err := s.store.Hosts.Create(t.Context(), host, false); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := map[string]bool{}, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		page, err := pb.NewHostServiceClient(s.as("admin")).ListHosts(t.Context(), &pb.ListHostsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if bytes := proto.Size(page); bytes > 2<<20 {
			t.Errorf("page %d has %d bytes", pages, bytes)
		}
		for _, host := range page.GetHosts() {
			seen[host.GetMeta().GetName()] = true
		}
		token = page.GetNextPageToken()
	}
	if len(seen) != count || pages < 4 {
		t.Errorf("%d pages with %d of %d hosts", pages, len(seen), count)
	}
}

// The lists that are not pages of the store have the same limit: events here, with the longest messages.
func TestAListOfLongEventsComesInPagesThatEveryClientAccepts(t *testing.T) {
	s := start(t)
	log := store.NewEventLog(s.store)
	const count = 1000
	for i := range count {
		if err := log.Record(t.Context(), model.Event{Object: model.KindVolume, Name: fmt.Sprint(i), Reason: "Moved", Message: strings.Repeat("m", 32<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := map[string]bool{}, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		page, err := pb.NewEventServiceClient(s.as("admin")).ListEvents(t.Context(), &pb.ListEventsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range page.GetEvents() {
			if seen[event.GetName()] {
				t.Errorf("event %s is sent twice", event.GetName())
			}
			seen[event.GetName()] = true
		}
		token = page.GetNextPageToken()
	}
	if len(seen) != count || pages < 2 { // of 1 MiB at most
		t.Errorf("%d pages with %d of %d events", pages, len(seen), count)
	}
}
