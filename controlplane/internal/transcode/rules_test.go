package transcode_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"sluice.dev/sluice/proto/openapi"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func asError(err error, into **connect.Error) bool { return errors.As(err, into) }

// public calls f with each method that HTTP serves, and its rule.
func public(t *testing.T, f func(method protoreflect.MethodDescriptor, verb, path string, body string)) {
	t.Helper()
	count := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("sluice.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			if service.Name() == "GatewayStreamService" || service.Name() == "JoinService" {
				continue
			}
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
				count++
				switch pattern := rule.GetPattern().(type) {
				case *annotations.HttpRule_Get:
					f(method, http.MethodGet, pattern.Get, rule.GetBody())
				case *annotations.HttpRule_Post:
					f(method, http.MethodPost, pattern.Post, rule.GetBody())
				case *annotations.HttpRule_Patch:
					f(method, http.MethodPatch, pattern.Patch, rule.GetBody())
				case *annotations.HttpRule_Delete:
					f(method, http.MethodDelete, pattern.Delete, rule.GetBody())
				default:
					t.Errorf("%s has no HTTP rule", method.FullName())
				}
			}
		}
		return true
	})
	if count < 60 {
		t.Fatalf("only %d methods are found", count)
	}
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

func TestEachPublicMethodAnswersAtItsRule(t *testing.T) {
	var called atomic.Value
	bare := grpc.NewServer(
		grpc.UnaryInterceptor(func(_ context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			called.Store(info.FullMethod + fmt.Sprint(request))
			return nil, status.Error(codes.DataLoss, "reached")
		}),
		grpc.StreamInterceptor(func(_ any, _ grpc.ServerStream, info *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			called.Store(info.FullMethod)
			return status.Error(codes.DataLoss, "reached")
		}))
	registerAll(bare)
	s := serve(t, bare)
	public(t, func(method protoreflect.MethodDescriptor, verb, path, body string) {
		text := ""
		if body != "" {
			text = "{}"
		}
		got, answer := s.send(verb, variable.ReplaceAllString(path, "object-1"), text)
		wantError(t, got, answer, http.StatusInternalServerError, codes.DataLoss, "reached")
		wanted := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
		reached, _ := called.Load().(string)
		if !strings.HasPrefix(reached, wanted) || (strings.Contains(path, "{") && !strings.Contains(reached, "object-1")) {
			t.Errorf("%s %s reaches %s, wanted %s with the variables of the path", verb, path, reached, wanted)
		}
	})
}

func registerAll(at *grpc.Server) {
	pb.RegisterAccountServiceServer(at, pb.UnimplementedAccountServiceServer{})
	pb.RegisterVolumeServiceServer(at, pb.UnimplementedVolumeServiceServer{})
	pb.RegisterTargetServiceServer(at, pb.UnimplementedTargetServiceServer{})
	pb.RegisterHostServiceServer(at, pb.UnimplementedHostServiceServer{})
	pb.RegisterSnapshotServiceServer(at, pb.UnimplementedSnapshotServiceServer{})
	pb.RegisterStoragePoolServiceServer(at, pb.UnimplementedStoragePoolServiceServer{})
	pb.RegisterGatewayServiceServer(at, pb.UnimplementedGatewayServiceServer{})
	pb.RegisterGatewayPoolServiceServer(at, pb.UnimplementedGatewayPoolServiceServer{})
	pb.RegisterFabricServiceServer(at, pb.UnimplementedFabricServiceServer{})
	pb.RegisterMaintenanceServiceServer(at, pb.UnimplementedMaintenanceServiceServer{})
	pb.RegisterSessionServiceServer(at, pb.UnimplementedSessionServiceServer{})
	pb.RegisterEventServiceServer(at, pb.UnimplementedEventServiceServer{})
	pb.RegisterFindingServiceServer(at, pb.UnimplementedFindingServiceServer{})
	pb.RegisterLoadServiceServer(at, pb.UnimplementedLoadServiceServer{})
	pb.RegisterMembershipServiceServer(at, pb.UnimplementedMembershipServiceServer{})
}

func TestTheServedDocumentHasEachRule(t *testing.T) {
	bare := grpc.NewServer()
	registerAll(bare)
	s := serve(t, bare)
	got, body := s.send(http.MethodGet, "/openapi.yaml", "")
	if got != http.StatusOK || body != string(openapi.Document) {
		t.Fatalf("got status %d and %d bytes", got, len(body))
	}
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := yaml.Unmarshal(openapi.Document, &document); err != nil {
		t.Fatal(err)
	}
	object := regexp.MustCompile(`\{\w+\.meta\.name\}`)
	public(t, func(method protoreflect.MethodDescriptor, verb, path, _ string) {
		operation, found := document.Paths[object.ReplaceAllString(path, "{name}")][strings.ToLower(verb)]
		if !found {
			t.Errorf("the document lacks %s %s", verb, path)
			return
		}
		kind := map[bool]string{false: "application/json", true: "application/x-ndjson"}[method.IsStreamingServer()]
		if _, found := operation.Responses["200"].Content[kind]; !found {
			t.Errorf("%s %s does not answer with %s", verb, path, kind)
		}
	})
}

// watching is a service whose watch sends two messages; then it fails, or waits for the end of its client.
type watching struct {
	pb.UnimplementedFabricServiceServer
	fail  error
	ended chan error
}

func (w *watching) WatchFabrics(_ *pb.WatchFabricsRequest, stream grpc.ServerStreamingServer[pb.WatchFabricsResponse]) error {
	for version := range int64(2) {
		if err := stream.Send(&pb.WatchFabricsResponse{ResourceVersion: version + 1}); err != nil {
			return err
		}
	}
	if w.fail != nil {
		return w.fail
	}
	<-stream.Context().Done()
	w.ended <- stream.Context().Err()
	return stream.Context().Err()
}

func watch(t *testing.T, fail error) (*site, *watching) {
	t.Helper()
	service, bare := &watching{fail: fail, ended: make(chan error, 1)}, grpc.NewServer()
	pb.RegisterFabricServiceServer(bare, service)
	return serve(t, bare), service
}

func TestAStreamEndsWithItsClient(t *testing.T) {
	t.Run("REST", func(t *testing.T) {
		s, service := watch(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/fabrics:watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		for range 2 {
			if !lines.Scan() || !strings.Contains(lines.Text(), "resourceVersion") {
				t.Fatalf("got the line %q (%v)", lines.Text(), lines.Err())
			}
		}
		cancel()
		<-service.ended
	})
	for protocol, options := range map[string][]connect.ClientOption{"Connect": nil, "gRPC-Web": {connect.WithGRPCWeb()}} {
		t.Run(protocol, func(t *testing.T) {
			s, service := watch(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := connect.NewClient[pb.WatchFabricsRequest, pb.WatchFabricsResponse](
				s.http, s.url+pb.FabricService_WatchFabrics_FullMethodName, options...).CallServerStream(ctx, connect.NewRequest(&pb.WatchFabricsRequest{}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if !stream.Receive() {
					t.Fatal(stream.Err())
				}
			}
			cancel()
			<-service.ended
		})
	}
}

func TestARESTStreamThatFailsEndsWithALineThatHasTheError(t *testing.T) {
	s, _ := watch(t, status.Error(codes.Unavailable, "try again: 100%"))
	got, body := s.send(http.MethodGet, "/v1/fabrics:watch", "")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if got != http.StatusOK || len(lines) != 3 {
		t.Fatalf("got status %d and %q", got, body)
	}
	problem := strings.TrimSuffix(strings.TrimPrefix(lines[2], `{"error":`), "}")
	wantError(t, 200, problem, 200, codes.Unavailable, "try again: 100%")
}

func TestADeadlineOfARESTRequestEndsTheCall(t *testing.T) {
	s, service := watch(t, nil)
	for timeout, wanted := range map[string]string{"0.05": "DeadlineExceeded", "soon": "InvalidArgument", "-1": "InvalidArgument", "NaN": "InvalidArgument"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/fabrics:watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Server-Timeout", timeout)
		got, body := s.do(request)
		switch wanted {
		case "DeadlineExceeded":
			if err := <-service.ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call ends with %v", err)
			}
		default:
			wantError(t, got, body, http.StatusBadRequest, codes.InvalidArgument, "X-Server-Timeout", "seconds")
		}
	}
}
