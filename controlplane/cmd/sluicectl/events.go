package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// eventQuery selects events.
type eventQuery struct {
	kind, name string
	// last bounds the newest events that are shown; 0: all.
	last int
}

func eventsCommand(g *globals) *cobra.Command {
	query := eventQuery{}
	var follow bool
	command := &cobra.Command{
		Use: "events", Args: cobra.NoArgs,
		Short: "Show what happened: ownership moved, a gateway was fenced, a volume has no owner",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := query.check(); err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				service := pb.NewEventServiceClient(connection)
				events, version, err := query.list(ctx, service)
				if err != nil {
					return err
				}
				if !follow {
					return g.printEvents(command.OutOrStdout(), events)
				}
				err = g.followEvents(ctx, command, service, query, events, version)
				if command.Context().Err() != nil { // interrupted: this is the normal end
					return nil
				}
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&query.kind, "kind", "", "only events of this kind of object, for example volume")
	flags.StringVar(&query.name, "name", "", "only events of the object with this name")
	flags.IntVarP(&query.last, "last", g.lastShorthand(), 50, "number of the newest events; 0: all of the last week")
	flags.BoolVarP(&follow, "follow", "f", false, "continue with events that happen from now on, until interrupted")
	var nouns []string
	for _, k := range kinds {
		nouns = append(nouns, k.name)
	}
	completions := map[string]cobra.CompletionFunc{
		"kind": cobra.FixedCompletions(nouns, cobra.ShellCompDirectiveNoFileComp),
		"name": func(command *cobra.Command, names []string, begun string) ([]string, cobra.ShellCompDirective) {
			if k := kindNamed(query.kind); k != nil {
				return k.completeNames(g)(command, names, begun)
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	for flag, complete := range completions {
		if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
	return command
}

// check finds the kind of the query.
func (q *eventQuery) check() error {
	if q.last < 0 {
		return usagef("-n %d: 0 or more are possible", q.last)
	}
	if q.kind == "" {
		return nil
	}
	k := kindNamed(q.kind)
	if k == nil {
		return usagef("--kind %q: there is no such kind; `sluicectl --help` lists them", q.kind)
	}
	q.kind = k.message
	return nil
}

// list returns the events, newest last, and the version from which they can be followed.
func (q *eventQuery) list(ctx context.Context, service pb.EventServiceClient) ([]*pb.Event, int64, error) {
	var all []*pb.Event
	version := int64(0)
	for page, err := range client.Pages(ctx, service.ListEvents, &pb.ListEventsRequest{Kind: q.kind, Name: q.name}) {
		if err != nil {
			return nil, 0, err
		}
		if version == 0 {
			version = page.GetResourceVersion()
		}
		all = append(all, page.GetEvents()...)
	}
	if q.last > 0 && len(all) > q.last {
		all = all[len(all)-q.last:]
	}
	return all, version, nil
}

func (g *globals) printEvents(to io.Writer, events []*pb.Event) error {
	if !g.structured() {
		return eventTable(to, events)
	}
	items := make([]map[string]any, len(events))
	for i, event := range events {
		var err error
		if items[i], err = plainEvent(event); err != nil {
			return err
		}
	}
	return encode(to, map[string]any{"apiVersion": apiVersion, "kind": "List", "items": items}, g.output)
}

// followEvents prints each event as a line, or as a YAML document, until it is interrupted. It continues if a replica restarts.
func (g *globals) followEvents(ctx context.Context, command *cobra.Command, service pb.EventServiceClient, query eventQuery,
	before []*pb.Event, version int64,
) error {
	to := command.OutOrStdout()
	if g.output == "table" || g.output == "wide" {
		if _, err := fmt.Fprintln(to, eventLine(eventTitles)); err != nil {
			return err
		}
	}
	for _, event := range before {
		if err := g.printEvent(to, event); err != nil {
			return err
		}
	}
	following := &followed{query: query, version: version}
	away := false
	for {
		err := following.watch(ctx, service, func(event *pb.Event) error {
			away = false
			return g.printEvent(to, event)
		})
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			return err
		}
		if !away {
			away = true
			_, _ = fmt.Fprintf(command.ErrOrStderr(), "not reachable, tried again until it is: %s\n", status.Convert(err).Message())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchAgainAfter):
		}
	}
}

// followed is a query, and the version up to which all of its events were printed.
type followed struct {
	query   eventQuery
	version int64
}

// watch calls tell for events after the version, and updates the version, until the stream ends. If the store no longer has the
// history since that version, it sends all events again, and printed events are skipped.
func (f *followed) watch(ctx context.Context, service pb.EventServiceClient, tell func(*pb.Event) error) error {
	stream, err := service.WatchEvents(ctx, &pb.WatchEventsRequest{
		Options: &pb.WatchOptions{ResourceVersion: f.version}, Kind: f.query.kind, Name: f.query.name})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		if response.GetEvent().GetSequence() <= f.version {
			continue
		}
		if err := tell(response.GetEvent()); err != nil {
			return err
		}
		f.version = max(f.version, response.GetResourceVersion()) // 0 while all are sent again
	}
}

func (g *globals) printEvent(to io.Writer, event *pb.Event) error {
	if !g.structured() {
		_, err := fmt.Fprintln(to, eventLine(eventCells(event)))
		return err
	}
	shown, err := plainEvent(event)
	if err != nil {
		return err
	}
	if g.output == "json" { // on one line
		return json.NewEncoder(to).Encode(shown)
	}
	if g.output == "yaml" {
		_, _ = fmt.Fprintln(to, "---")
	}
	return encode(to, shown, g.output)
}

var eventTitles = []string{"TIME", "SEVERITY", "OBJECT", "REASON", "COUNT", "MESSAGE"}

// eventLine uses fixed widths, because the widths of a growing table are unknown.
func eventLine(cells []string) string {
	return fmt.Sprintf("%-20s  %-8s  %-24s  %-18s  %-5s  %s", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5])
}

func eventCells(e *pb.Event) []string {
	return []string{e.GetTime().AsTime().Format(time.RFC3339), word(e.GetSeverity(), "EVENT_SEVERITY_"),
		e.GetKind() + "/" + e.GetName(), orDash(e.GetReason()), fmt.Sprintf("x%d", e.GetCount()), e.GetMessage()}
}

func eventTable(to io.Writer, events []*pb.Event) error {
	out := tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(out, strings.Join(eventTitles, "\t"))
	for _, event := range events {
		_, _ = fmt.Fprintln(out, strings.Join(eventCells(event), "\t"))
	}
	return out.Flush()
}

func plainEvent(event *pb.Event) (map[string]any, error) {
	shown := map[string]any{}
	err := asMap(event, shown)
	return shown, err
}

// asMap adds the fields of a message to a map, in their JSON form.
func asMap(m proto.Message, to map[string]any) error {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &to)
}
