package dispatch

import (
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Bounds of a gateway's messages. A message that exceeds them ends the stream, because no correct gateway sends one.
const (
	// maxText bounds a string, in bytes; maxReason bounds the stored part of a reason or problem, in bytes.
	maxText   = 16 << 10
	maxReason = 1 << 10
	// maxEntries bounds a list or a map in a message: the sessions or the volumes of a gateway.
	maxEntries = model.MaxGatewaySessions
	// maxTSIH is the greatest TSIH (RFC 7143 §11.12.6, 16 bits). A gateway has no more sessions.
	maxTSIH = 65535
	// maxPerSession bounds the negotiated parameters of a session, maxCapabilities those of a gateway.
	maxPerSession   = 64
	maxCapabilities = 64

	// Messages and bytes that a gateway may send at once, and each second from then on. A gateway with 10,000 volumes sends one
	// message for each after its hello; 64 times the largest reservations are 64 MiB.
	burstMessages, messagesPerSecond = 100_000, 10_000
	burstBytes, bytesPerSecond       = 128 << 20, 16 << 20
	// floodPause is the time for which a flooding gateway is refused.
	floodPause = 10 * time.Second
)

// listBounds has the bounds of lists and maps that are shorter than maxEntries.
var listBounds = map[protoreflect.FullName]int{
	"sluice.v1.SessionObserved.parameters":     maxPerSession,
	"sluice.v1.StreamHello.capabilities":       maxCapabilities,
	"sluice.v1.PoolObserved.unusable_devices":  maxEntries / 16,
	"sluice.v1.PoolObserved.taken_out_devices": maxEntries / 16,
}

// within refuses a message with a string, bytes or list that exceeds the bounds.
func within(message proto.Message) error {
	var refusal error
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		refusal = fieldWithin(field, value)
		return refusal == nil
	})
	return refusal
}

func fieldWithin(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	limit, narrower := listBounds[field.FullName()]
	if !narrower {
		limit = maxEntries
	}
	switch {
	case field.IsMap():
		if n := value.Map().Len(); n > limit {
			return limitError(field, n, "entries", limit)
		}
		var refusal error
		value.Map().Range(func(key protoreflect.MapKey, entry protoreflect.Value) bool {
			if refusal = valueWithin(field.MapKey(), key.Value()); refusal == nil {
				refusal = valueWithin(field.MapValue(), entry)
			}
			return refusal == nil
		})
		return refusal
	case field.IsList():
		list := value.List()
		if list.Len() > limit {
			return limitError(field, list.Len(), "entries", limit)
		}
		if field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind && field.Message() == nil {
			return nil
		}
		for i := range list.Len() {
			if err := valueWithin(field, list.Get(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return valueWithin(field, value)
}

func valueWithin(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	switch field.Kind() {
	case protoreflect.StringKind:
		if n := len(value.String()); n > maxText {
			return limitError(field, n, "bytes", maxText)
		}
	case protoreflect.BytesKind:
		if n := len(value.Bytes()); n > model.MaxReservationState {
			return limitError(field, n, "bytes", model.MaxReservationState)
		}
	case protoreflect.MessageKind:
		return within(value.Message().Interface())
	}
	return nil
}

func limitError(field protoreflect.FieldDescriptor, has int, unit string, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "%s has %d %s, at most %d are possible", field.FullName(), has, unit, limit)
}

// quota bounds the rate at which a gateway sends.
type quota struct {
	messages, bytes float64
	at              time.Time
}

func newQuota(now time.Time) quota { return quota{burstMessages, burstBytes, now} }

// spend refuses a message if too many came before it.
func (q *quota) spend(now time.Time, bytes int) error {
	passed := max(now.Sub(q.at), 0).Seconds()
	q.at = now
	q.messages = min(q.messages+passed*messagesPerSecond, burstMessages) - 1
	q.bytes = min(q.bytes+passed*bytesPerSecond, burstBytes) - float64(bytes)
	switch {
	case q.messages < 0:
		return status.Errorf(codes.ResourceExhausted, "the gateway sends more than %d messages each second", messagesPerSecond)
	case q.bytes < 0:
		return status.Errorf(codes.ResourceExhausted, "the gateway sends more than %d MiB each second", bytesPerSecond>>20)
	}
	return nil
}

// shortened returns the stored part of a text: its first bytes, as valid UTF-8.
func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	end := maxReason
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// sessionsWithin refuses sessions with impossible numbers.
func sessionsWithin(observed *pb.SessionsObserved) error {
	for _, session := range observed.GetPut() {
		if session.GetTsih() > maxTSIH {
			return status.Errorf(codes.InvalidArgument, "TSIH %d is not in 0…%d (RFC 7143 §11.12.6)", session.GetTsih(), maxTSIH)
		}
	}
	return nil
}
