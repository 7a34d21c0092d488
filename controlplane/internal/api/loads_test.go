package api

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var received = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// loadedSystem has the volume `orders` of gw-1, the host `web`, and a second gateway without a report.
func loadedSystem() *objects.Objects {
	o := objects.New()
	one := &model.Gateway{Meta: model.Meta{Name: "gw-1"}, Status: model.GatewayStatus{Number: 1, Incarnation: "i"}}
	o.Put(one)
	o.Put(&model.Gateway{Meta: model.Meta{Name: "gw-2"}, Status: model.GatewayStatus{Number: 2}})
	o.Put(&model.Volume{Meta: model.Meta{Name: "orders", UID: "v"}, Status: model.VolumeStatus{Ownership: model.Ownership{Owner: one.Ref()}}})
	o.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "h"}})
	return o
}

// reports are two reports of gw-1, two seconds apart.
func reports() loadPair {
	from := &model.LiveLoad{Gateway: model.GatewayRef{Number: 1, Incarnation: "i"}, Clock: time.Hour,
		Volumes: map[string]model.VolumeCounts{"v": {Commands: 100, Reads: 60, Writes: 30}},
		Hosts:   map[string]model.HostCounts{"h": {Sessions: 2, Reads: 60, Answered: 90}}}
	to := &model.LiveLoad{Gateway: from.Gateway, Clock: time.Hour + 2*time.Second, Sessions: 2, BusyPermille: 250,
		Volumes: map[string]model.VolumeCounts{"v": {Commands: 160, Reads: 100, Writes: 40, ReadBytes: 40 * 4096, WriteBytes: 10 * 8192,
			ReadTime: 40 * time.Millisecond, WriteTime: 100 * time.Millisecond, InProgress: 3}},
		Hosts: map[string]model.HostCounts{"h": {Sessions: 2, Reads: 80, Others: 10, ReadBytes: 20 * 4096, Answered: 120,
			AnsweredTime: 60 * time.Millisecond, InProgress: 4}}}
	return loadPair{number: 1, before: from, after: to, received: received}
}

func TestRatesAreTheDifferenceOfTwoReportsDividedByTheirInterval(t *testing.T) {
	o, pairs := loadedSystem(), []loadPair{reports()}
	measured := func(l *pb.Load) *pb.Load {
		l.Interval, l.MeasuredTime = durationpb.New(2*time.Second), timestamppb.New(received)
		return l
	}
	volume := &pb.Load{ReadsPerSecond: 20, WritesPerSecond: 5, OthersPerSecond: 5, ReadBytesPerSecond: 20 * 4096, WriteBytesPerSecond: 5 * 8192,
		ReadLatency: durationpb.New(time.Millisecond), WriteLatency: durationpb.New(10 * time.Millisecond),
		Latency: durationpb.New(2800 * time.Microsecond), InProgress: 3}
	gateway := proto.CloneOf(volume)
	volume.Object, volume.Gateway = &pb.ObjectReference{Name: "orders"}, "gw-1"
	gateway.Object, gateway.Sessions, gateway.BusyPermille = &pb.ObjectReference{Name: "gw-1"}, 2, 250
	host := &pb.Load{Object: &pb.ObjectReference{Name: "web"}, ReadsPerSecond: 10, OthersPerSecond: 5, ReadBytesPerSecond: 10 * 4096,
		Latency: durationpb.New(2 * time.Millisecond), InProgress: 4, Sessions: 2}
	now := received.Add(time.Second)
	for _, c := range []struct{ got, want *pb.Load }{
		{volumeLoads(o, pairs, now)[0], measured(volume)}, {hostLoads(o, pairs, now)[0], measured(host)},
	} {
		if !proto.Equal(c.got, c.want) {
			t.Errorf("%v\nwanted %v", c.got, c.want)
		}
	}
	for _, got := range gatewayLoads(o, pairs, now) {
		want := measured(gateway)
		if got.GetObject().GetName() == "gw-2" {
			want = &pb.Load{Object: &pb.ObjectReference{Name: "gw-2"}}
		}
		if !proto.Equal(got, want) {
			t.Errorf("%v\nwanted %v", got, want)
		}
	}
}

func TestReportsThatGiveNoPresentRateAreNotShown(t *testing.T) {
	for what, change := range map[string]func(*loadPair, *time.Time){
		"one report only":                     func(p *loadPair, _ *time.Time) { p.before = nil },
		"the gateway no longer reports":       func(_ *loadPair, now *time.Time) { *now = received.Add(maxLoadGap + 1) },
		"no request came between the reports": func(p *loadPair, _ *time.Time) { p.before.Clock = 0 },
		"the same report twice":               func(p *loadPair, _ *time.Time) { p.before.Clock = p.after.Clock },
		"another process is the owner now":    func(p *loadPair, _ *time.Time) { p.after.Gateway.Incarnation = "former" },
	} {
		pair, now := reports(), received
		change(&pair, &now)
		if load := volumeLoads(loadedSystem(), []loadPair{pair}, now)[0]; load.GetInterval() != nil || load.GetReadsPerSecond() != 0 {
			t.Errorf("%s: %v", what, load)
		}
	}
}

func TestCountsThatBeginAgainGiveNoRate(t *testing.T) {
	pair := reports()
	pair.after.Volumes["v"] = model.VolumeCounts{Commands: 1, Reads: 1, InProgress: 1}
	pair.after.Hosts["h"] = model.HostCounts{Sessions: 1, Answered: 1}
	if load := volumeLoads(loadedSystem(), []loadPair{pair}, received)[0]; load.GetReadsPerSecond() != 0 || load.GetInProgress() != 1 {
		t.Errorf("a volume that was opened again: %v", load)
	}
	if load := hostLoads(loadedSystem(), []loadPair{pair}, received)[0]; load.GetReadsPerSecond() != 0 || load.GetSessions() != 1 {
		t.Errorf("a host that logged in again: %v", load)
	}
}
