package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// topInterval is the default of --interval; gateways report no more often.
	topInterval = 2 * time.Second
	// topHeader is the count of lines of a screen that are not rows: the time, the headings, and the line of the prompt.
	topHeader = 3
	// clearScreen puts the cursor to the top left, and clears the screen (ECMA-48 CUP and ED).
	clearScreen = "\x1b[H\x1b[2J"
	bytesPerMB  = 1e6
)

// topColumn is a column of `top`.
type topColumn struct {
	heading string
	cell    func(*pb.Load) string
}

var (
	topReads      = topColumn{"READ/s", func(l *pb.Load) string { return perSecond(l.GetReadsPerSecond()) }}
	topWrites     = topColumn{"WRITE/s", func(l *pb.Load) string { return perSecond(l.GetWritesPerSecond()) }}
	topReadBytes  = topColumn{"READ-MB/s", func(l *pb.Load) string { return megabytes(l.GetReadBytesPerSecond()) }}
	topWriteBytes = topColumn{"WRITE-MB/s", func(l *pb.Load) string { return megabytes(l.GetWriteBytesPerSecond()) }}
	topReadTime   = topColumn{"READ-LATENCY", func(l *pb.Load) string { return latency(l.GetReadLatency()) }}
	topWriteTime  = topColumn{"WRITE-LATENCY", func(l *pb.Load) string { return latency(l.GetWriteLatency()) }}
	topLatency    = topColumn{"LATENCY", func(l *pb.Load) string { return latency(l.GetLatency()) }}
	topQueue      = topColumn{"QUEUE", func(l *pb.Load) string { return strconv.FormatUint(uint64(l.GetInProgress()), 10) }}
	topSessions   = topColumn{"SESSIONS", func(l *pb.Load) string { return strconv.FormatUint(uint64(l.GetSessions()), 10) }}
	topBusy       = topColumn{"BUSY", func(l *pb.Load) string { return fmt.Sprintf("%d%%", (l.GetBusyPermille()+5)/10) }}
	topGateway    = topColumn{"GATEWAY", func(l *pb.Load) string { return cmp.Or(l.GetGateway(), "-") }}
)

// topTables has the columns of each kind, after the name.
var topTables = map[string][]topColumn{
	"volume":  {topGateway, topReads, topWrites, topReadBytes, topWriteBytes, topReadTime, topWriteTime, topQueue},
	"host":    {topSessions, topReads, topWrites, topReadBytes, topWriteBytes, topLatency, topQueue},
	"gateway": {topBusy, topSessions, topReads, topWrites, topReadBytes, topWriteBytes, topReadTime, topWriteTime, topQueue},
}

// topOrders has the values of --sort, each with a function that is negative if its first load comes first.
var topOrders = map[string]func(a, b *pb.Load) int{
	"iops": func(a, b *pb.Load) int {
		iops := func(l *pb.Load) float64 {
			return l.GetReadsPerSecond() + l.GetWritesPerSecond() + l.GetOthersPerSecond()
		}
		return cmp.Compare(iops(b), iops(a))
	},
	"bytes": func(a, b *pb.Load) int {
		bytes := func(l *pb.Load) float64 { return l.GetReadBytesPerSecond() + l.GetWriteBytesPerSecond() }
		return cmp.Compare(bytes(b), bytes(a))
	},
	"latency": func(a, b *pb.Load) int {
		return cmp.Compare(b.GetLatency().AsDuration(), a.GetLatency().AsDuration())
	},
	"queue": func(a, b *pb.Load) int { return cmp.Compare(b.GetInProgress(), a.GetInProgress()) },
	"name":  func(*pb.Load, *pb.Load) int { return 0 },
}

// top prints loads, once or repeatedly.
type top struct {
	g          *globals
	k          *kind
	command    *cobra.Command
	connection *grpc.ClientConn
	names      []string

	order    string
	limit    int
	interval time.Duration
	watch    bool
	// screen: the output is a terminal, and each table replaces the one before.
	screen *os.File
}

func topCommand(g *globals) *cobra.Command {
	t := &top{g: g}
	command := &cobra.Command{
		Use: "top volumes|hosts|gateways [NAME...]", Args: cobra.MinimumNArgs(1),
		Short: "Show what volumes, hosts or gateways do now: IOPS, MB/s, latency and queue depth",
		Long: "Show what volumes, hosts or gateways do now, the busiest first. Rates and latencies are means over about two seconds. A MB has " +
			"1,000,000 bytes. LATENCY is the mean time from the arrival of a command to its response, at the gateway that executes it, or for hosts " +
			"at the gateway to which the host is connected. QUEUE is the count of commands in progress. A row with `-` has no measurement, because " +
			"no gateway reports it. On a terminal the table is renewed until you interrupt it; elsewhere it is printed once.",
		ValidArgs: []string{"volumes", "hosts", "gateways"},
		RunE: func(command *cobra.Command, arguments []string) error {
			t.command, t.k, t.names = command, kindNamed(arguments[0]), arguments[1:]
			if t.k == nil || topTables[t.k.name] == nil {
				return usagef("%q has no load: `sluicectl top volumes`, `hosts` and `gateways` are possible", arguments[0])
			}
			if err := t.check(); err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				t.connection = connection
				return t.run(ctx)
			})
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&t.watch, "watch", "w", false, "renew the table until interrupted; default on a terminal")
	flags.DurationVar(&t.interval, "interval", topInterval, "time between two tables, 1s or more")
	flags.StringVar(&t.order, "sort", "iops", "what comes first: the most iops, bytes, latency or queue, or name")
	flags.IntVar(&t.limit, "limit", 0, "maximum count of rows; 0: as many as the terminal shows, or all")
	return command
}

// check refuses wrong flags, and has the table renewed on a terminal.
func (t *top) check() error {
	switch {
	case topOrders[t.order] == nil:
		return usagef("--sort %q: iops, bytes, latency, queue and name are possible", t.order)
	case t.interval < time.Second:
		return usagef("--interval %v: 1s or more is possible", t.interval)
	case t.limit < 0:
		return usagef("--limit %d: 0 or more is possible", t.limit)
	}
	if out := t.command.OutOrStdout(); isTerminal(out) && !t.g.structured() {
		t.screen, _ = out.(*os.File)
		if !t.command.Flags().Changed("watch") {
			return t.command.Flags().Set("watch", "true")
		}
	}
	return nil
}

// run prints one table, or renews it until the context ends.
func (t *top) run(ctx context.Context) error {
	for first := true; ; first = false {
		loads, err := t.read(ctx)
		switch {
		case ctx.Err() != nil && t.watch:
			return nil
		case err != nil && (!t.watch || status.Code(err) != codes.Unavailable):
			return err
		case err != nil:
			_, _ = fmt.Fprintln(t.command.ErrOrStderr(), "not reachable, tried again until it is:", status.Convert(err).Message())
		default:
			if err := t.print(loads, first); err != nil || !t.watch {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.interval):
		}
	}
}

// read returns the loads of the named objects, or of all, in their order. Errors: a name without an object.
func (t *top) read(ctx context.Context) ([]*pb.Load, error) {
	var loads []*pb.Load
	request := &pb.ListLoadsRequest{Kind: t.k.message}
	for {
		response, err := pb.NewLoadServiceClient(t.connection).ListLoads(ctx, request)
		if err != nil {
			return nil, err
		}
		loads = append(loads, response.GetLoads()...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if len(t.names) > 0 {
		missing := slices.Clone(t.names)
		loads = slices.DeleteFunc(loads, func(l *pb.Load) bool {
			name := l.GetObject().GetName()
			missing = slices.DeleteFunc(missing, func(n string) bool { return n == name })
			return !slices.Contains(t.names, name)
		})
		if len(missing) > 0 {
			return nil, status.Errorf(codes.NotFound, "there is no %s %s; `sluicectl %s list` shows the names", t.k.name,
				strings.Join(missing, ", "), t.k.name)
		}
	}
	slices.SortStableFunc(loads, topOrders[t.order])
	return loads, nil
}

func (t *top) print(loads []*pb.Load, first bool) error {
	out := t.command.OutOrStdout()
	shown := loads[:min(len(loads), cmp.Or(t.limit, len(loads)))]
	if t.g.structured() {
		return t.encode(out, shown)
	}
	switch {
	case t.screen != nil && t.watch:
		if _, height, err := term.GetSize(int(t.screen.Fd())); err == nil && t.limit == 0 {
			shown = shown[:min(len(shown), max(1, height-topHeader))]
		}
		_, _ = fmt.Fprintf(out, "%s%s  %d of %d %s\n", clearScreen, time.Now().Format(time.TimeOnly), len(shown), len(loads), t.k.name+"s")
	case !first:
		_, _ = fmt.Fprintln(out)
	}
	columns := topTables[t.k.name]
	rows := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	row := []string{"NAME"}
	for _, column := range columns {
		row = append(row, column.heading)
	}
	_, _ = fmt.Fprintln(rows, strings.Join(row, "\t"))
	for _, load := range shown {
		row = []string{load.GetObject().GetName()}
		for _, column := range columns {
			if load.GetInterval() == nil && column.heading != topGateway.heading {
				row = append(row, "-")
				continue
			}
			row = append(row, column.cell(load))
		}
		_, _ = fmt.Fprintln(rows, strings.Join(row, "\t"))
	}
	return rows.Flush()
}

func (t *top) encode(out io.Writer, loads []*pb.Load) error {
	items := make([]map[string]any, len(loads))
	for i, load := range loads {
		items[i] = map[string]any{}
		if err := asMap(load, items[i]); err != nil {
			return err
		}
	}
	if t.watch && t.g.output == "yaml" {
		_, _ = fmt.Fprintln(out, "---")
	}
	return encode(out, map[string]any{"loads": items}, t.g.output)
}

// perSecond shows a rate without more digits than matter.
func perSecond(rate float64) string {
	if rate > 0 && rate < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}

func megabytes(rate float64) string { return strconv.FormatFloat(rate/bytesPerMB, 'f', 1, 64) }

// latency shows a duration with three digits; `-`: no command has ended.
func latency(mean *durationpb.Duration) string {
	if mean == nil {
		return "-"
	}
	switch d := mean.AsDuration(); {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
