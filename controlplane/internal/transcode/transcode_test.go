package transcode_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/transcode"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// site is a gRPC server that HTTP serves.
type site struct {
	t    *testing.T
	url  string
	http *http.Client
}

// serve serves a gRPC server by HTTP.
func serve(t *testing.T, from *grpc.Server) *site {
	t.Helper()
	handler, err := transcode.New(from)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(handler)
	listener.EnableHTTP2 = true
	listener.StartTLS()
	t.Cleanup(listener.Close)
	return &site{t: t, url: listener.URL, http: listener.Client()}
}

// real returns the control plane's server with an empty store, by HTTP and as a gRPC connection.
func real(t *testing.T) (*site, *grpc.ClientConn) {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	made, err := server.New(server.Options{
		Store: objects, View: view.New(objects, log), Streams: pb.UnimplementedGatewayStreamServiceServer{}, Insecure: true, Log: log,
		Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = made.Serve(listener) }()
	t.Cleanup(made.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return serve(t, made.Server), connection
}

// send sends a REST request, and returns the status and the body of its response.
func (s *site) send(method, path, body string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return s.do(request)
}

func (s *site) do(request *http.Request) (int, string) {
	s.t.Helper()
	response, err := s.http.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// read decodes a body that must have this status.
func read[M proto.Message](t *testing.T, status int, body string, wanted int, into M) M {
	t.Helper()
	if status != wanted {
		t.Fatalf("got status %d, wanted %d: %s", status, wanted, body)
	}
	if err := protojson.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return into
}

// wantError asserts that a body is a google.rpc.Status with this code, whose message and details contain all words.
func wantError(t *testing.T, got int, body string, wanted int, code codes.Code, words ...string) {
	t.Helper()
	if problem := read(t, got, body, wanted, &spb.Status{}); codes.Code(problem.GetCode()) != code { //nolint:gosec // a code
		t.Fatalf("got code %d, wanted %v: %s", problem.GetCode(), code, body)
	}
	for _, word := range words {
		if !strings.Contains(body, word) {
			t.Errorf("the error does not name %q: %s", word, body)
		}
	}
}

const fabricRed = `{"meta":{"name":"red","labels":{"app":"db"}},"spec":{}}`

func TestAnObjectIsTheSameInEachProtocol(t *testing.T) {
	s, connection := real(t)
	got, body := s.send(http.MethodPost, "/v1/fabrics", fabricRed)
	wanted := read(t, got, body, http.StatusOK, &pb.CreateFabricResponse{}).GetFabric()
	if wanted.GetMeta().GetUid() == "" {
		t.Fatalf("the created fabric has no uid: %s", body)
	}
	check := func(protocol string, response *pb.GetFabricResponse, err error) {
		t.Helper()
		if err != nil || !proto.Equal(response.GetFabric(), wanted) {
			t.Errorf("%s: got %v (%v), wanted %v", protocol, response, err, wanted)
		}
	}
	request := &pb.GetFabricRequest{Name: "red"}
	response, err := pb.NewFabricServiceClient(connection).GetFabric(t.Context(), request)
	check("gRPC", response, err)
	for protocol, options := range map[string][]connect.ClientOption{
		"gRPC over HTTP": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "gRPC-Web JSON": {connect.WithGRPCWeb(), connect.WithProtoJSON()},
		"Connect": nil, "Connect JSON": {connect.WithProtoJSON()},
	} {
		response, err := connect.NewClient[pb.GetFabricRequest, pb.GetFabricResponse](s.http, s.url+pb.FabricService_GetFabric_FullMethodName, options...).
			CallUnary(t.Context(), connect.NewRequest(request))
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
			continue
		}
		check(protocol, response.Msg, nil)
	}
	got, body = s.send(http.MethodGet, "/v1/fabrics/red", "")
	check("REST", read(t, got, body, http.StatusOK, &pb.GetFabricResponse{}), nil)
}

func TestRESTUpdatesListsAndDeletes(t *testing.T) {
	s, _ := real(t)
	got, body := s.send(http.MethodPost, "/v1/fabrics", fabricRed)
	read(t, got, body, http.StatusOK, &pb.CreateFabricResponse{})
	got, body = s.send(http.MethodPatch, "/v1/fabrics/red?updateMask=meta.labels", `{"meta":{"labels":{"app":"web"}},"spec":{}}`)
	if updated := read(t, got, body, http.StatusOK, &pb.UpdateFabricResponse{}); updated.GetFabric().GetMeta().GetLabels()["app"] != "web" {
		t.Errorf("the label is not updated: %s", body)
	}
	for query, count := range map[string]int{"": 1, "?options.labelSelector[app]=web&pageSize=1": 1, "?options.label_selector%5Bapp%5D=db": 0} {
		got, body = s.send(http.MethodGet, "/v1/fabrics"+query, "")
		if listed := read(t, got, body, http.StatusOK, &pb.ListFabricsResponse{}); len(listed.GetFabrics()) != count {
			t.Errorf("the list %q has %s, wanted %d fabrics", query, body, count)
		}
	}
	got, body = s.send(http.MethodDelete, "/v1/fabrics/red?options.uid=00000000-0000-4000-8000-000000000000", "")
	wantError(t, got, body, http.StatusConflict, codes.Aborted)
	got, body = s.send(http.MethodDelete, "/v1/fabrics/red", "")
	read(t, got, body, http.StatusOK, &pb.DeleteFabricResponse{})
	got, body = s.send(http.MethodGet, "/v1/fabrics/red", "")
	wantError(t, got, body, http.StatusNotFound, codes.NotFound, "red")
}

func TestErrorsKeepCodeAndDetailsInEachProtocol(t *testing.T) {
	s, _ := real(t)
	got, body := s.send(http.MethodPost, "/v1/volumes", `{"meta":{"name":"v"},"spec":{"pool":"p","sizeBytes":"1"}}`)
	wantError(t, got, body, http.StatusBadRequest, codes.InvalidArgument, "google.rpc.BadRequest", `"spec.sizeBytes"`, "1 MiB")
	got, body = s.send(http.MethodGet, "/v1/volumes?pageToken="+strings.Repeat("x", 1025), "")
	wantError(t, got, body, http.StatusBadRequest, codes.InvalidArgument, "google.rpc.BadRequest", `"pageToken"`)
	request := &pb.CreateVolumeRequest{Volume: &pb.Volume{Meta: &pb.ObjectMeta{Name: "v"}, Spec: &pb.VolumeSpec{Pool: "p", SizeBytes: 1}}}
	for protocol, options := range map[string][]connect.ClientOption{"gRPC-Web": {connect.WithGRPCWeb()}, "Connect": nil} {
		_, err := connect.NewClient[pb.CreateVolumeRequest, pb.CreateVolumeResponse](s.http, s.url+pb.VolumeService_CreateVolume_FullMethodName, options...).
			CallUnary(t.Context(), connect.NewRequest(request))
		var failed *connect.Error
		if !asError(err, &failed) || failed.Code() != connect.CodeInvalidArgument || len(failed.Details()) != 1 {
			t.Fatalf("%s: got %v", protocol, err)
		}
		detail, err := failed.Details()[0].Value()
		if text, _ := protojson.Marshal(detail); err != nil || !strings.Contains(string(text), "spec.sizeBytes") {
			t.Errorf("%s: the detail is %s (%v)", protocol, text, err)
		}
	}
}

func TestABadRequestGetsAnErrorThatNamesTheField(t *testing.T) {
	s, _ := real(t)
	got, body := s.send(http.MethodPost, "/v1/fabrics", fabricRed)
	read(t, got, body, http.StatusOK, &pb.CreateFabricResponse{})
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               codes.Code
		words              []string
	}{
		"unknown field":     {http.MethodPost, "/v1/fabrics", `{"meta":{"nmae":"red"}}`, 400, codes.InvalidArgument, []string{"nmae"}},
		"bad JSON":          {http.MethodPost, "/v1/fabrics", `{"meta":`, 400, codes.InvalidArgument, []string{"unexpected EOF"}},
		"wrong type":        {http.MethodPost, "/v1/volumes", `{"spec":{"sizeBytes":"many"}}`, 400, codes.InvalidArgument, []string{"sizeBytes"}},
		"unknown parameter": {http.MethodGet, "/v1/fabrics?pagesize=1", "", 400, codes.InvalidArgument, []string{`"pagesize"`, "no such parameter"}},
		"unknown option":    {http.MethodGet, "/v1/fabrics?options.x[a]=1", "", 400, codes.InvalidArgument, []string{"options.x[a]"}},
		"bad number":        {http.MethodGet, "/v1/fabrics?pageSize=many", "", 400, codes.InvalidArgument, []string{"many", "page_size"}},
		"unknown of get":    {http.MethodGet, "/v1/fabrics/red?nmae=1", "", 400, codes.InvalidArgument, []string{"nmae"}},
		"bad mask":          {http.MethodPatch, "/v1/fabrics/red?updateMask=spec.none", fabricRed, 400, codes.InvalidArgument, []string{"spec.none"}},
		"long body": {
			http.MethodPost, "/v1/fabrics", `{"meta":{"name":"` + strings.Repeat("a", 9<<20) + `"}}`, 429, codes.ResourceExhausted, []string{"8388608"},
		},
		"unknown path":    {http.MethodGet, "/v1/nothing", "", 404, codes.NotFound, []string{"/v1/nothing", "openapi.yaml"}},
		"unknown root":    {http.MethodGet, "/nothing", "", 404, codes.NotFound, []string{"/nothing"}},
		"wrong method":    {http.MethodPut, "/v1/fabrics/red", "{}", 405, codes.Unimplemented, []string{"PUT", "DELETE, GET, PATCH"}},
		"gateway streams": {http.MethodPost, "/sluice.v1.GatewayStreamService/Connect", "{}", 404, codes.NotFound, nil},
		"health":          {http.MethodPost, "/grpc.health.v1.Health/Check", "{}", 404, codes.NotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, body := s.send(c.method, c.path, c.body)
			wantError(t, got, body, c.status, c.code, c.words...)
		})
	}
}

func TestABodyOfUnknownLengthIsBounded(t *testing.T) {
	s, _ := real(t)
	body := io.MultiReader(strings.NewReader(`{"meta":{"name":"`), strings.NewReader(strings.Repeat("a", 9<<20)))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/fabrics", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	got, text := s.do(request)
	wantError(t, got, text, http.StatusTooManyRequests, codes.ResourceExhausted, "8388608")
}

func TestRESTWatchesBeginWithThePresentObjects(t *testing.T) {
	s, _ := real(t)
	got, body := s.send(http.MethodPost, "/v1/fabrics", fabricRed)
	read(t, got, body, http.StatusOK, &pb.CreateFabricResponse{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/fabrics:watch?options.labelSelector[app]=db", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if kind := response.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("got media type %q", kind)
	}
	lines := json.NewDecoder(response.Body)
	for _, wanted := range []string{"RESET ", "PUT red", "BOOKMARK "} {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		change := &pb.WatchFabricsResponse{}
		if err := protojson.Unmarshal(line, change); err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimPrefix(change.GetType().String(), "CHANGE_TYPE_") + " " + change.GetFabric().GetMeta().GetName(); text != wanted {
			t.Errorf("got %q, wanted %q", text, wanted)
		}
	}
}
