package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

var sessionKind = &kind{
	name: "session", aliases: []string{"sessions", "sess"},
	message: "Session", messages: "Sessions", field: "session", fields: "sessions", observed: true,
	filter: filterSessions, refers: map[string]string{"gateway": "gateway", "host": "host", "target": "target"},
	more: []func(*kind, *globals) *cobra.Command{evictSession},
	columns: []column{
		of("TARGET", func(s *pb.Session) string { return s.GetStatus().GetTarget() }),
		of("HOST", func(s *pb.Session) string { return s.GetStatus().GetHost() }),
		of("INITIATOR", func(s *pb.Session) string { return s.GetStatus().GetInitiator() }),
		of("GATEWAY", func(s *pb.Session) string { return s.GetStatus().GetGateway() }),
		of("PORTAL", func(s *pb.Session) string { return s.GetStatus().GetPortalAddress() }),
		of("SINCE", sessionSince),
		of("READS", func(s *pb.Session) string { return total(s.GetStatus().GetCounters().GetReads()) }),
		of("WRITES", func(s *pb.Session) string { return total(s.GetStatus().GetCounters().GetWrites()) }),
		wide("OTHER", func(s *pb.Session) string { return total(s.GetStatus().GetCounters().GetOtherCommands()) }),
		of("READ-BYTES", func(s *pb.Session) string { return total(s.GetStatus().GetCounters().GetReadBytes()) }),
		of("WRITE-BYTES", func(s *pb.Session) string { return total(s.GetStatus().GetCounters().GetWriteBytes()) }),
		wide("FROM", func(s *pb.Session) string { return s.GetStatus().GetInitiatorAddress() }),
		wide("TSIH", func(s *pb.Session) string { return number(s.GetStatus().GetTsih()) }),
		wide("PORTAL-GROUP", func(s *pb.Session) string { return number(s.GetStatus().GetPortalGroupTag()) }),
	},
}

func total(n uint64) string { return strconv.FormatUint(n, 10) }

func sessionSince(s *pb.Session) string {
	if s.GetStatus().GetLoginTime() == nil {
		return "-"
	}
	return s.GetStatus().GetLoginTime().AsTime().Format(time.RFC3339)
}

func filterSessions(command *cobra.Command) func(proto.Message) bool {
	var gateway, host, target string
	command.Flags().StringVar(&gateway, "gateway", "", "only sessions on this gateway")
	command.Flags().StringVar(&host, "host", "", "only sessions of this host, by its name or an initiator's")
	command.Flags().StringVar(&target, "target", "", "only sessions to this target")
	return func(object proto.Message) bool {
		session, _ := object.(*pb.Session)
		status := session.GetStatus()
		return (gateway == "" || gateway == status.GetGateway()) && (target == "" || target == status.GetTarget()) &&
			(host == "" || host == status.GetHost() || host == status.GetInitiator())
	}
}

func evictSession(k *kind, g *globals) *cobra.Command {
	var dryRun bool
	selected := func(proto.Message) bool { return false }
	command := &cobra.Command{
		Use: "evict [NAME...]", Short: "Ask the hosts of sessions to log out, then drop their connections",
		Long: "Ask the hosts of sessions to log out, then drop their connections. A host that may still log in comes back: to " +
			"keep it out, take it from the target's hosts first. Without a name, --gateway, --host and --target select the sessions.",
		ValidArgsFunction: k.completeNames(g),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				names, err := chosenSessions(ctx, command, connection, k, names, selected)
				if err != nil {
					return err
				}
				if err := canDryRun(ctx, connection, &pb.EvictSessionRequest{}, dryRun); err != nil {
					return err
				}
				client := pb.NewSessionServiceClient(connection)
				for _, name := range names {
					if _, err := client.EvictSession(ctx, &pb.EvictSessionRequest{Name: name, DryRun: dryRun}); err != nil {
						return err
					}
					k.printChange(command, &pb.Session{Meta: &pb.ObjectMeta{Name: name}}, "is asked to log out", dryRun)
				}
				return nil
			})
		},
	}
	selected = k.filter(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	return command
}

// chosenSessions returns the sessions that a command names or selects. It refuses both, and neither.
func chosenSessions(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, k *kind, names []string,
	selected func(proto.Message) bool,
) ([]string, error) {
	filters := slices.ContainsFunc([]string{"gateway", "host", "target"}, command.Flags().Changed)
	if filters == (len(names) > 0) {
		return nil, usagef("name sessions, or select them by --gateway, --host or --target; `sluicectl session list` shows them")
	}
	if !filters {
		return names, nil
	}
	all, err := k.list(ctx, connection, nil)
	for _, session := range all {
		if selected(session) {
			names = append(names, metaOf(session).GetName())
		}
	}
	if err == nil && len(names) == 0 {
		_, err = fmt.Fprintln(command.ErrOrStderr(), "no session is selected")
	}
	return names, err
}
