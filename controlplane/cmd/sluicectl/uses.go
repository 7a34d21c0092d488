package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// shownUses bounds the names of sessions in a message.
const shownUses = 3

// bySessions returns the use of an object by sessions, whose object of that kind `of` returns.
func bySessions(of func(*pb.SessionStatus) string) func(proto.Message, []*pb.Session) []string {
	return func(object proto.Message, sessions []*pb.Session) []string {
		var names []string
		for _, session := range sessions {
			if status := session.GetStatus(); of(status) == metaOf(object).GetName() {
				names = append(names, fmt.Sprintf("%s (host %s to target %s)", session.GetMeta().GetName(), status.GetHost(), status.GetTarget()))
			}
		}
		if len(names) == 0 {
			return nil
		}
		text := fmt.Sprintf("sessions %s", strings.Join(names[:min(len(names), shownUses)], ", "))
		if more := len(names) - shownUses; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return []string{text}
	}
}

// byVolumes adds the use of a gateway by the volumes that it owns.
func byVolumes(object proto.Message, sessions []*pb.Session) []string {
	uses := bySessions((*pb.SessionStatus).GetGateway)(object, sessions)
	gateway, _ := object.(*pb.Gateway)
	if owned := gateway.GetStatus().GetVolumesOwned(); owned > 0 {
		uses = append(uses, fmt.Sprintf("%d volumes that it owns", owned))
	}
	return uses
}

// inUse returns for each object in use what uses it, as a sentence. An object that does not exist is not in use.
func inUse(ctx context.Context, connection *grpc.ClientConn, k *kind, names []string) ([]string, error) {
	if k.uses == nil {
		return nil, nil
	}
	listed, err := sessionKind.list(ctx, connection, nil)
	if err != nil {
		return nil, err
	}
	sessions := ofType[*pb.Session](listed)
	var found []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		object, err := k.get(ctx, connection, name)
		if client.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, k.about(name, err)
		}
		if uses := k.uses(object, sessions); len(uses) > 0 {
			found = append(found, fmt.Sprintf("%s %s is used by %s", k.name, name, strings.Join(uses, " and ")))
		}
	}
	return found, nil
}
