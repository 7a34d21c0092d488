package server

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// gate precedes every call. It identifies the caller, checks whether the caller may call the method and whether the message is
// valid, and writes the audit log and the metrics.
type gate struct {
	insecure  bool
	validator protovalidate.Validator
	log       *slog.Logger
	metrics   *metrics
	// certificates is nil if their expiry is not tracked.
	certificates *Certificates
}

func (g *gate) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (response any, err error) {
	begun := time.Now()
	defer func() {
		if problem := recover(); problem != nil {
			err = g.panicked(info.FullMethod, problem)
		}
		g.recordCall(ctx, info.FullMethod, request, begun, err)
	}()
	ctx, err = g.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err := g.valid(request); err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

func (g *gate) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) (err error) {
	begun, ctx := time.Now(), stream.Context()
	defer func() {
		if problem := recover(); problem != nil {
			err = g.panicked(info.FullMethod, problem)
		}
		g.recordCall(ctx, info.FullMethod, nil, begun, err)
	}()
	ctx, err = g.admit(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	return handler(service, &admitted{ServerStream: stream, ctx: ctx, gate: g, begun: begun})
}

// admitted is a stream with an identified caller, whose messages are validated.
type admitted struct {
	grpc.ServerStream
	ctx   context.Context
	gate  *gate
	begun time.Time
}

func (a *admitted) Context() context.Context { return a.ctx }

func (a *admitted) RecvMsg(message any) error {
	if err := a.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	if err := a.renewal(time.Now()); err != nil {
		return err
	}
	return a.gate.valid(message)
}

// renewal ends a gateway's stream once a day while its certificate expires soon. TLS does not exchange certificates on an open
// connection, so a renewed one is unknown here until the gateway connects again.
func (a *admitted) renewal(now time.Time) error {
	identity := IdentityOf(a.ctx)
	if identity.Role != RoleGateway || now.Sub(a.begun) < reportAgain || identity.CertificateEnd.Sub(now) > expiresSoon {
		return nil
	}
	return status.Errorf(codes.Unavailable, "the certificate of this connection ends on %s: connect again with the present one",
		identity.CertificateEnd.UTC().Format(time.DateOnly))
}

func (g *gate) admit(ctx context.Context, method string) (context.Context, error) {
	identity, err := identify(ctx, g.insecure)
	if err != nil {
		return ctx, err
	}
	if g.certificates != nil && !identity.CertificateEnd.IsZero() {
		g.certificates.record(holder{string(identity.Role), identity.Name}, identity.CertificateEnd)
	}
	ctx = context.WithValue(ctx, identityKey{}, identity)
	return ctx, allow(identity, method, g.insecure)
}

// valid checks a message against the rules in its .proto file.
func (g *gate) valid(message any) error {
	asked, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	err := g.validator.Validate(asked)
	if err == nil {
		return nil
	}
	var broken *protovalidate.ValidationError
	if !errors.As(err, &broken) {
		return status.Errorf(codes.Internal, "rules of %s: %v", asked.ProtoReflect().Descriptor().FullName(), err)
	}
	if broken.Violations = relevantViolations(asked, broken.Violations); len(broken.Violations) == 0 {
		return nil
	}
	details, text := &errdetails.BadRequest{}, "invalid"
	for _, violation := range broken.Violations {
		field, description := fieldOf(violation), describe(violation)
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: field, Description: description})
		text += "; " + field + ": " + description
	}
	with, err := status.New(codes.InvalidArgument, text).WithDetails(details)
	if err != nil {
		return status.Error(codes.InvalidArgument, text)
	}
	return with.Err()
}

func (g *gate) panicked(method string, problem any) error {
	g.log.Error("a call panicked", "method", method, "problem", problem, "stack", string(debug.Stack()))
	return status.Errorf(codes.Internal, "%s failed inside; the log of this replica says where", method)
}

// named is implemented by most messages that change something, or by their object.
type named interface{ GetName() string }

// recordCall counts a call, and writes it to the audit log if it may have changed something.
func (g *gate) recordCall(ctx context.Context, method string, request any, begun time.Time, err error) {
	code := status.Code(err)
	g.metrics.observeCall(method, code, time.Since(begun))
	service, name := grpcNames(method)
	if readOnly(name) || service == "grpc.health.v1.Health" {
		return
	}
	identity, _ := identify(ctx, g.insecure)
	line := []slog.Attr{slog.String("caller", identity.Name), slog.String("role", string(identity.Role)),
		slog.String("method", method), slog.String("object", loggedName(request)), slog.String("result", code.String())}
	if identity.Login != "" {
		line = append(line, slog.String("login", identity.Login))
	}
	if dry, ok := request.(interface{ GetDryRun() bool }); ok && dry.GetDryRun() {
		line = append(line, slog.Bool("dryRun", true)) // nothing was changed
	}
	g.log.LogAttrs(ctx, slog.LevelInfo, "audit", line...)
}

// maxLoggedName bounds the logged part of a name, in bytes. It is the longest valid name.
const maxLoggedName = 253

func loggedName(request any) string { return Shortened(objectName(request)) }

// Shortened bounds a name that a caller has sent, for a log.
func Shortened(name string) string {
	if len(name) > maxLoggedName {
		return strings.ToValidUTF8(name[:maxLoggedName], "") + "…"
	}
	return name
}

// objectName returns the name in a request, or the name of the object in it. No other part of a request is logged.
func objectName(request any) string {
	if direct, ok := request.(named); ok {
		return direct.GetName()
	}
	message, ok := request.(proto.Message)
	if !ok {
		return ""
	}
	reflected := message.ProtoReflect()
	fields := reflected.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() == nil || field.IsList() || field.IsMap() {
			continue
		}
		object := reflected.Get(field).Message()
		meta := object.Descriptor().Fields().ByName("meta")
		if meta == nil {
			continue
		}
		if m, ok := object.Get(meta).Message().Interface().(named); ok {
			return m.GetName()
		}
	}
	return ""
}
