// Package transcode serves the services of a gRPC server over HTTP: gRPC-Web, Connect, and REST/JSON as the google.api.http rules of the
// protocols say. Vanguard (connectrpc.com/vanguard) translates calls. It supports no streams in REST and no maps in queries, so queries.go
// serves lists and watches of REST (controlplane/decisions/api-and-client.md).
package transcode

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/vanguard"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"sluice.dev/sluice/proto/openapi"
)

const (
	// maxMessage bounds the body of a request, in bytes, as the gRPC server bounds a message; and a response that Vanguard translates.
	maxMessage = 8 << 20
	// publicPackage has the services of the API.
	publicPackage = "sluice.v1."
)

// private are the services without HTTP: gateways and joining servers call them, each at a listener of its own kind.
var private = []string{"GatewayStreamService", "JoinService"}

// handler serves one gRPC server.
type handler struct {
	transcoder http.Handler
	// queries are the lists and watches of REST, by path.
	queries map[string]*query
	rules   []rule
}

// New returns a handler of the public services that are registered at the server. A call passes the server's interceptors, with the
// context and the TLS state of its HTTP request. GET /openapi.yaml answers with the OpenAPI document. The server of HTTP must not limit the
// time of a response, because watches last as long as their clients.
func New(server *grpc.Server) (http.Handler, error) {
	made := &handler{queries: map[string]*query{}}
	var services []*vanguard.Service
	for name := range server.GetServiceInfo() {
		short, public := strings.CutPrefix(name, publicPackage)
		if !public || slices.Contains(private, short) {
			continue
		}
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		service, ok := found.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, fmt.Errorf("%s is no service", name)
		}
		services = append(services, vanguard.NewServiceWithSchema(service, server))
		for i := range service.Methods().Len() {
			if err := made.addMethod(service.Methods().Get(i), server); err != nil {
				return nil, err
			}
		}
	}
	transcoder, err := vanguard.NewTranscoder(services,
		vanguard.WithDefaultServiceOptions(
			vanguard.WithTargetProtocols(vanguard.ProtocolGRPC), vanguard.WithTargetCodecs(vanguard.CodecProto),
			vanguard.WithMaxMessageBufferBytes(maxMessage)),
		vanguard.WithCodec(newJSONCodec),
		vanguard.WithUnknownHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			problem := status.Newf(codes.NotFound, "%s %s: no such path; /openapi.yaml lists all", r.Method, r.URL.Path)
			writeError(w, http.StatusNotFound, problem)
		})))
	if err != nil {
		return nil, fmt.Errorf("HTTP rules: %w", err)
	}
	made.transcoder = transcoder
	return made, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if r.URL.Path == "/openapi.yaml" {
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = w.Write(openapi.Document)
			return
		}
		if query, found := h.queries[r.URL.Path]; found {
			query.ServeHTTP(w, r)
			return
		}
	}
	if code, problem := h.check(r); problem != nil {
		writeError(w, code, problem)
		return
	}
	h.transcoder.ServeHTTP(w, r)
}
