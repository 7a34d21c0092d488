package server_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// unpaged are the lists without pages, each of few elements.
var unpaged = []string{"ListAccounts", "ListHeldOperations", "ListJoinTokens", "ListMembers"}

// listMethods returns the methods with pages: every list except those of which there are few.
func listMethods() map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	for _, method := range managed() {
		if name := string(method.Name()); strings.HasPrefix(name, "List") && !slices.Contains(unpaged, name) {
			all[name] = method
		}
	}
	return all
}

// listed returns the number of elements and the next page's token in the answer to a list.
func listed(answer proto.Message) (int, string) {
	message, count := answer.ProtoReflect(), 0
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		if fields.Get(i).IsList() {
			count += message.Get(fields.Get(i)).List().Len()
		}
	}
	return count, message.Get(fields.ByName("next_page_token")).String()
}

// list calls a list method with these fields of its request.
func (s *system) list(method protoreflect.MethodDescriptor, options *pb.ListOptions, size int32, token string) (int, string, error) {
	request := simple(method).ProtoReflect()
	fields := method.Input().Fields()
	for _, filter := range []protoreflect.Name{"kind", "name"} {
		if field := fields.ByName(filter); field != nil {
			request.Clear(field)
		}
	}
	if options != nil && fields.ByName("options") == nil { // a list that no earlier release had
		size, token, options = max(size, options.GetPageSize()), cmp.Or(token, options.GetPageToken()), nil
	}
	if options != nil {
		request.Set(fields.ByName("options"), protoreflect.ValueOfMessage(options.ProtoReflect()))
	}
	if method.Name() == "ListLoads" { // it lists the objects of one kind
		request.Set(fields.ByName("kind"), protoreflect.ValueOfString("Host"))
	}
	request.Set(fields.ByName("page_size"), protoreflect.ValueOfInt32(size))
	request.Set(fields.ByName("page_token"), protoreflect.ValueOfString(token))
	answer, err := s.send(request.Interface())
	count, next := listed(answer)
	return count, next, err
}

// two creates two objects of each kind, two sessions and two events.
func (s *system) two() {
	s.t.Helper()
	s.fill(2)
	for _, request := range changes() {
		if message := request.ProtoReflect(); strings.HasPrefix(string(message.Descriptor().Name()), "Create") {
			message.Clear(message.Descriptor().Fields().ByName("dry_run"))
			if _, err := s.send(request); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func TestEveryListIsPagedByTheFieldsOfItsRequest(t *testing.T) {
	s := start(t)
	s.follow()
	s.two()
	for name, method := range listMethods() {
		all, _, err := s.list(method, nil, 0, "")
		if err != nil || all < 2 {
			t.Errorf("%s: %d elements, %v", name, all, err)
			continue
		}
		seen, token := 0, ""
		for page := 0; page == 0 || token != ""; page++ {
			options := &pb.ListOptions{}
			size := int32(1)
			if page%2 == 1 { // the deprecated fields accept a token of the others, and the same value twice is no conflict
				options = &pb.ListOptions{PageSize: 1, PageToken: token}
				size = 0
			}
			count, next, err := s.list(method, options, size, token)
			if err != nil || count != 1 {
				t.Fatalf("%s, page %d: %d elements, %v", name, page, count, err)
			}
			seen, token = seen+count, next
		}
		if seen != all {
			t.Errorf("%s: the pages have %d elements of %d", name, seen, all)
		}
	}
}

func TestAListWhosePageIsGivenTwiceAndDiffersIsRefused(t *testing.T) {
	s := start(t)
	s.follow()
	s.two()
	for name, method := range listMethods() {
		_, token, err := s.list(method, nil, 1, "")
		if err != nil || token == "" {
			t.Fatalf("%s: token %q, %v", name, token, err)
		}
		if method.Input().Fields().ByName("options") != nil {
			_, _, err = s.list(method, &pb.ListOptions{PageSize: 2}, 1, "")
			wantField(t, err, codes.InvalidArgument, "pageSize")
			_, _, err = s.list(method, &pb.ListOptions{PageToken: "another"}, 1, token)
			wantField(t, err, codes.InvalidArgument, "pageToken")
		}
		_, _, err = s.list(method, nil, 1, "another")
		wantField(t, err, codes.InvalidArgument, "pageToken")
		_, _, err = s.list(method, nil, -1, "")
		wantField(t, err, codes.InvalidArgument, "pageSize")
	}
}

func TestAPageOfMoreThanAThousandHasAThousand(t *testing.T) {
	s := start(t)
	log := store.NewEventLog(s.store)
	for range 1001 {
		if err := log.Record(t.Context(), model.Event{Object: model.KindVolume, Name: model.NewUID(), Reason: "Moved"}); err != nil {
			t.Fatal(err)
		}
	}
	count, token, err := s.list(listMethods()["ListEvents"], nil, 5000, "")
	if err != nil || count != 1000 || token == "" {
		t.Errorf("a page of %d, token %q, %v", count, token, err)
	}
}
