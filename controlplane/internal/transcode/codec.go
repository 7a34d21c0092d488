package transcode

import (
	"fmt"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// jsonCodec reads and writes JSON. A message that it cannot read is INVALID_ARGUMENT, also because of an unknown field: a misspelt field
// must not be ignored.
type jsonCodec struct{ vanguard.JSONCodec }

func newJSONCodec(types vanguard.TypeResolver) vanguard.Codec {
	return jsonCodec{vanguard.JSONCodec{
		MarshalOptions: protojson.MarshalOptions{Resolver: types}, UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types},
	}}
}

// Unmarshal implements vanguard.Codec.
func (c jsonCodec) Unmarshal(data []byte, message proto.Message) error {
	return unreadable(c.JSONCodec.Unmarshal(data, message))
}

// UnmarshalField implements vanguard.RESTCodec.
func (c jsonCodec) UnmarshalField(data []byte, message proto.Message, field protoreflect.FieldDescriptor) error {
	return unreadable(c.JSONCodec.UnmarshalField(data, message, field))
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the body is no valid message: %w", err))
}
