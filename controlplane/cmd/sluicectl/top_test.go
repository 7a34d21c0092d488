package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func topLoads() []*pb.Load {
	return []*pb.Load{
		{Object: &pb.ObjectReference{Kind: "Volume", Name: "idle"}, Gateway: "gw-2", Interval: durationpb.New(2 * time.Second)},
		{Object: &pb.ObjectReference{Kind: "Volume", Name: "orders"}, Gateway: "gw-1", Interval: durationpb.New(2 * time.Second), ReadsPerSecond: 25_000.4,
			WritesPerSecond: 7.25, ReadBytesPerSecond: 102_401_638, WriteBytesPerSecond: 59_392, InProgress: 32,
			ReadLatency: durationpb.New(85_400 * time.Nanosecond), WriteLatency: durationpb.New(3_141_592 * time.Nanosecond)},
		{Object: &pb.ObjectReference{Kind: "Volume", Name: "unowned"}},
	}
}

// printed returns what `top volumes` prints for these loads.
func printed(t *testing.T, format string) string {
	t.Helper()
	var out strings.Builder
	command := &cobra.Command{}
	command.SetOut(&out)
	shown := &top{g: &globals{output: format}, k: kindNamed("volumes"), command: command}
	if err := shown.print(topLoads(), true); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTopShowsRatesBytesLatenciesAndQueueAndADashWithoutAMeasurement(t *testing.T) {
	want := `NAME      GATEWAY   READ/s   WRITE/s   READ-MB/s   WRITE-MB/s   READ-LATENCY   WRITE-LATENCY   QUEUE
idle      gw-2      0        0         0.0         0.0          -              -               0
orders    gw-1      25000    7.2       102.4       0.1          85µs           3.14ms          32
unowned   -         -        -         -           -            -              -               -
`
	if got := printed(t, "table"); got != want {
		t.Errorf("%s\nwanted\n%s", got, want)
	}
}

func TestTopInJSONHasTheFieldsOfTheAPI(t *testing.T) {
	for _, field := range []string{`"loads": [`, `"readsPerSecond": 25000.4`, `"readLatency": "0.000085400s"`, `"inProgress": 32`, `"name": "orders"`} {
		if got := printed(t, "json"); !strings.Contains(got, field) {
			t.Errorf("%s is not in %s", field, got)
		}
	}
}

func TestTopRefusesWhatItCannotShowByTheNameOfItsFlag(t *testing.T) {
	l := start(t)
	for arguments, want := range map[string]string{
		"top fabrics":                      `"fabrics" has no load`,
		"top volumes --sort size":          `--sort "size": iops, bytes, latency, queue and name are possible`,
		"top volumes --interval 10ms":      "--interval 10ms: 1s or more is possible",
		"top volumes --limit -1":           "--limit -1: 0 or more is possible",
		"top":                              "requires at least 1 arg",
		"top volumes --output unspecified": `--output "unspecified"`,
	} {
		if _, err := l.run(strings.Fields(arguments)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestTopIsPrintedOnceWhereTheOutputIsNoTerminal(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "a") // the view of the server is complete
	if out, err := l.run("top", "hosts"); err != nil || strings.Count(out, "NAME") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTopPutsTheGreatestFirst(t *testing.T) {
	a := &pb.Load{ReadsPerSecond: 1, WriteBytesPerSecond: 9, Latency: durationpb.New(1), InProgress: 5}
	b := &pb.Load{OthersPerSecond: 2, ReadBytesPerSecond: 8, Latency: durationpb.New(2), InProgress: 4}
	for order, first := range map[string]*pb.Load{"iops": b, "bytes": a, "latency": b, "queue": a} {
		if compared := topOrders[order](a, b); (compared < 0) != (first == a) {
			t.Errorf("%s: %d", order, compared)
		}
	}
}
