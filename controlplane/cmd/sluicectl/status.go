package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// seriousError makes `status --check` exit with code 5 if there are findings that are critical or warnings.
type seriousError struct{ count int }

func (e *seriousError) Error() string { return fmt.Sprintf("%d findings", e.count) }

// overview is the content of `status`.
type overview struct {
	Server       string           `json:"server"`
	Client       string           `json:"clientVersion"`
	ControlPlane map[string]any   `json:"controlPlane"`
	Gateways     map[string]int   `json:"gateways"`
	Volumes      map[string]int   `json:"volumes"`
	Targets      map[string]int   `json:"targets"`
	Hosts        int              `json:"hosts"`
	Sessions     int              `json:"sessions"`
	Pools        int              `json:"pools"`
	Findings     []map[string]any `json:"findings"`
	Events       []map[string]any `json:"events"`
	findings     []*pb.Finding
	events       []*pb.Event
}

func statusCommand(g *globals) *cobra.Command {
	var check bool
	query := eventQuery{}
	command := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Show the state of the whole system on one screen",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				found, err := g.showStatus(ctx, command, connection, query)
				if err == nil && check && found > 0 {
					return &seriousError{found}
				}
				return err
			})
		},
	}
	command.Flags().BoolVar(&check, "check", false, "end with exit code 5 if a finding is critical or a warning")
	command.Flags().IntVarP(&query.last, "last", g.lastShorthand(), 5, "how many of the newest events; 0: none")
	return command
}

// showStatus prints the state of the system, and returns how many findings are critical or warnings.
func (g *globals) showStatus(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, query eventQuery) (int, error) {
	seen, err := survey(ctx, connection)
	if err != nil {
		return 0, err
	}
	events, err := query.newest(ctx, connection)
	if err != nil {
		return 0, err
	}
	findings, err := seriousFindings(ctx, connection)
	if err != nil {
		return 0, err
	}
	shown, err := seen.overview(g, findings, events)
	if err != nil {
		return 0, err
	}
	return len(findings), g.printOverview(command.OutOrStdout(), shown)
}

// seriousFindings returns the findings that are critical or warnings. `doctor` shows advice, too.
func seriousFindings(ctx context.Context, connection *grpc.ClientConn) ([]*pb.Finding, error) {
	return findingsOf(ctx, connection, &pb.ListFindingsRequest{MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_WARNING})
}

// newest reads no events if none are wanted.
func (q *eventQuery) newest(ctx context.Context, connection *grpc.ClientConn) ([]*pb.Event, error) {
	if err := q.check(); err != nil || q.last == 0 {
		return nil, err
	}
	events, _, err := q.list(ctx, pb.NewEventServiceClient(connection))
	return events, err
}

func (w *clusterObjects) overview(g *globals, findings []*pb.Finding, events []*pb.Event) (*overview, error) {
	o := &overview{Server: g.server, Client: version, ControlPlane: map[string]any{}, Gateways: map[string]int{},
		Volumes: map[string]int{}, Targets: map[string]int{}, Hosts: len(w.hosts), Sessions: len(w.sessions),
		Pools: len(w.pools), Findings: []map[string]any{}, Events: []map[string]any{}, findings: findings, events: events}
	if w.control != nil {
		if err := asMap(w.control, o.ControlPlane); err != nil {
			return nil, err
		}
	}
	for _, gateway := range w.gateways {
		o.Gateways[word(gateway.GetStatus().GetHealth(), "GATEWAY_HEALTH_")]++
	}
	for _, volume := range w.volumes {
		o.Volumes[ownershipWord(volume.GetStatus())]++
	}
	for _, target := range w.targets {
		o.Targets[string(redundancyOf(target))]++
	}
	for _, found := range findings {
		shown := map[string]any{}
		if err := asMap(found, shown); err != nil {
			return nil, err
		}
		o.Findings = append(o.Findings, shown)
	}
	for _, event := range events {
		shown, err := plainEvent(event)
		if err != nil {
			return nil, err
		}
		o.Events = append(o.Events, shown)
	}
	return o, nil
}

func (g *globals) printOverview(to io.Writer, o *overview) error {
	if g.structured() {
		return encode(to, o, g.output)
	}
	return o.print(to)
}

func (o *overview) print(to io.Writer) error {
	out := tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintf(out, "Control plane\t%s: %s\n", o.Server, o.controlText())
	_, _ = fmt.Fprintf(out, "Gateways\t%s\n", tally(o.Gateways))
	_, _ = fmt.Fprintf(out, "Volumes\t%s\n", tally(o.Volumes))
	_, _ = fmt.Fprintf(out, "Targets\t%s\n", tally(o.Targets))
	_, _ = fmt.Fprintf(out, "Hosts\t%d, with %d sessions\n", o.Hosts, o.Sessions)
	_, _ = fmt.Fprintf(out, "Pools\t%d\n", o.Pools)
	if err := out.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(to, "\nFindings: %s\n", none(len(o.findings)))
	writeFindings(to, "  ", o.findings)
	if len(o.events) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(to, "\nLast events")
	return eventTable(to, o.events)
}

func (o *overview) controlText() string {
	text := "answers"
	if version, known := o.ControlPlane["version"]; known {
		text += fmt.Sprintf(", version %v (sluicectl %s), replica %v", version, o.Client, o.ControlPlane["replica"])
	}
	if o.ControlPlane["embeddedStore"] == true {
		text += ", store inside"
	}
	if id, known := o.ControlPlane["systemId"]; known {
		text += fmt.Sprintf(", system %v", id)
	}
	return text
}

func none(count int) string {
	if count == 0 {
		return "none"
	}
	return fmt.Sprint(count)
}

// tally shows the number of objects, in total and by state.
func tally(states map[string]int) string {
	all := 0
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		all += states[state]
		parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
	}
	if all == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", all, strings.Join(parts, ", "))
}

// redundancy of a target's paths.
type redundancy string

const (
	redundant    redundancy = "redundant"
	notRedundant redundancy = "not redundant"
	notExported  redundancy = "not exported"
)

func redundancyOf(target *pb.Target) redundancy {
	switch {
	case len(target.GetStatus().GetPaths()) == 0:
		return notExported
	case conditionOf(target.GetStatus().GetConditions(), "PathsRedundant").GetStatus() == pb.ConditionStatus_CONDITION_STATUS_TRUE:
		return redundant
	}
	return notRedundant
}
