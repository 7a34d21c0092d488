package transcode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// query is a method whose request is the query of a GET request: a list or a stream.
type query struct {
	server            http.Handler
	path              string
	request, response protoreflect.MessageType
	stream            bool
}

// addMethod adds the rule of a method, and its query if the path of a GET rule has no variable.
func (h *handler) addMethod(method protoreflect.MethodDescriptor, server http.Handler) error {
	found, has := ruleOf(method)
	if !has {
		return nil
	}
	h.rules = append(h.rules, found)
	if found.verb != http.MethodGet || strings.Contains(found.template, "{") {
		return nil
	}
	request, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return fmt.Errorf("request of %s: %w", method.FullName(), err)
	}
	response, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return fmt.Errorf("response of %s: %w", method.FullName(), err)
	}
	h.queries[found.template] = &query{
		server: server, path: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()),
		request: request, response: response, stream: method.IsStreamingServer(),
	}
	return nil
}

// ServeHTTP implements http.Handler: it calls the method by gRPC, as the server's own ServeHTTP accepts it, and writes its messages as JSON.
func (q *query) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, problem := q.call(r)
	if problem != nil {
		writeError(w, runtime.HTTPStatusFromCode(problem.Code()), problem)
		return
	}
	answer := &answer{to: w, header: http.Header{}, message: q.response, stream: q.stream}
	q.server.ServeHTTP(answer, call)
	answer.end()
}

// call returns the gRPC call for a request.
func (q *query) call(r *http.Request) (*http.Request, *status.Status) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, status.Newf(codes.InvalidArgument, "query: %v", err)
	}
	message := q.request.New()
	if problem := checkQuery(message.Descriptor(), r); problem != nil {
		return nil, problem
	}
	if err := runtime.PopulateQueryParameters(message.Interface(), values, utilities.NewDoubleArray(nil)); err != nil {
		return nil, status.Newf(codes.InvalidArgument, "query: %v", err)
	}
	encoded, err := proto.Marshal(message.Interface())
	if err != nil {
		return nil, status.Newf(codes.InvalidArgument, "query: %v", err)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(encoded))) //nolint:gosec // a query is at most as long as HTTP headers
	call := r.Clone(r.Context())
	call.Method, call.URL = http.MethodPost, &url.URL{Path: q.path}
	call.Proto, call.ProtoMajor, call.ProtoMinor = "HTTP/2.0", 2, 0
	call.Body, call.ContentLength = io.NopCloser(bytes.NewReader(append(frame, encoded...))), -1
	for _, name := range []string{"Accept-Encoding", "Content-Encoding", "Content-Length", "Grpc-Timeout", "Grpc-Accept-Encoding", "Grpc-Encoding"} {
		call.Header.Del(name)
	}
	call.Header.Set("Content-Type", "application/grpc+proto")
	call.Header.Set("Te", "trailers")
	// The deadline has the same header as in the calls that Vanguard translates.
	if text := r.Header.Get("X-Server-Timeout"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds > 0 && seconds <= 86400) {
			return nil, invalid("X-Server-Timeout", "must be seconds, above 0 and at most 86400")
		}
		call.Header.Set("Grpc-Timeout", strconv.FormatInt(max(1, int64(seconds*1000)), 10)+"m")
	}
	return call, nil
}

// mapKey is the end of a parameter that names an entry of a map, as in `options.labelSelector[app]`.
var mapKey = regexp.MustCompile(`\[[^\]]*\]$`)

// known reports whether a query parameter names a field of a message, in the names of JSON or of the protocol.
func known(message protoreflect.MessageDescriptor, parameter string) bool {
	for _, name := range strings.Split(mapKey.ReplaceAllString(parameter, ""), ".") {
		if message == nil {
			return false
		}
		field := message.Fields().ByJSONName(name)
		if field == nil {
			field = message.Fields().ByName(protoreflect.Name(name))
		}
		if field == nil {
			return false
		}
		message = field.Message()
	}
	return true
}

// invalid returns the error of a request with a bad field.
func invalid(field, description string) *status.Status {
	plain := status.Newf(codes.InvalidArgument, "%s: %s", field, description)
	detailed, err := plain.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: description}},
	})
	if err != nil {
		return plain
	}
	return detailed
}
