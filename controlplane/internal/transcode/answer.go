package transcode

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// prefix is the length of what precedes a message of gRPC: a flag for compression, and the size in four bytes.
const prefix = 5

// answer is the http.ResponseWriter of a gRPC call. It writes the call's messages as JSON: the only message as the body, or each message
// of a stream as a line. A stream that fails after its first message ends with a line {"error": Status}.
type answer struct {
	to      http.ResponseWriter
	header  http.Header
	message protoreflect.MessageType
	stream  bool
	// pending are bytes of a message that is not complete.
	pending []byte
	begun   bool
	failed  error
}

// Header implements http.ResponseWriter. gRPC's headers and trailers stay here.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. The status of the call decides about that of HTTP.
func (a *answer) WriteHeader(int) {}

// Flush implements http.Flusher. Messages of a stream are flushed where they are complete.
func (a *answer) Flush() {}

// Write implements http.ResponseWriter.
func (a *answer) Write(bytes []byte) (int, error) {
	if a.failed != nil {
		return 0, a.failed
	}
	a.pending = append(a.pending, bytes...)
	for len(a.pending) >= prefix {
		size := prefix + int(binary.BigEndian.Uint32(a.pending[1:]))
		if len(a.pending) < size {
			break
		}
		if a.failed = a.writeMessage(a.pending[prefix:size]); a.failed != nil {
			return 0, a.failed
		}
		a.pending = a.pending[size:]
	}
	return len(bytes), nil
}

func (a *answer) writeMessage(encoded []byte) error {
	message := a.message.New().Interface()
	if err := proto.Unmarshal(encoded, message); err != nil {
		return err
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	if !a.begun {
		a.begun = true
		a.to.Header().Set("Content-Type", map[bool]string{false: "application/json", true: "application/x-ndjson"}[a.stream])
	}
	return a.writeLine(text)
}

// writeLine writes a line, and sends it at once if more can follow much later.
func (a *answer) writeLine(text []byte) error {
	if a.stream {
		text = append(text, '\n')
	}
	if _, err := a.to.Write(text); err != nil {
		return err
	}
	if a.stream {
		return http.NewResponseController(a.to).Flush()
	}
	return nil
}

// end writes the error of the call, if it has one.
func (a *answer) end() {
	result := a.result()
	switch {
	case result.Code() == codes.OK && !a.begun && a.stream:
		a.to.Header().Set("Content-Type", "application/x-ndjson") // a stream without messages
	case result.Code() == codes.OK || a.failed != nil: // a failed connection takes nothing more
	case !a.begun:
		writeError(a.to, runtime.HTTPStatusFromCode(result.Code()), result)
	case a.stream:
		text, _ := json.Marshal(map[string]json.RawMessage{"error": errorText(result)})
		_ = a.writeLine(text)
	}
}

// result returns the status of the call from its trailers (gRPC over HTTP/2, "Responses").
func (a *answer) result() *status.Status {
	trailer := func(name string) string { return a.header.Get(name) }
	if encoded := trailer("Grpc-Status-Details-Bin"); encoded != "" {
		detailed := &spb.Status{}
		if bytes, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "=")); err == nil && proto.Unmarshal(bytes, detailed) == nil {
			return status.FromProto(detailed)
		}
	}
	code, err := strconv.ParseUint(trailer("Grpc-Status"), 10, 32)
	if err != nil {
		return status.New(codes.Unavailable, "the call ended without a status: try again")
	}
	message, err := url.PathUnescape(trailer("Grpc-Message"))
	if err != nil {
		message = trailer("Grpc-Message")
	}
	return status.New(codes.Code(code), message)
}

// writeError answers a request with an error: google.rpc.Status as JSON.
func writeError(w http.ResponseWriter, code int, problem *status.Status) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(errorText(problem))
}

func errorText(problem *status.Status) []byte {
	text, err := protojson.Marshal(problem.Proto())
	if err != nil { // a detail of an unknown type
		text, _ = protojson.Marshal(status.New(problem.Code(), problem.Message()).Proto())
	}
	return text
}
