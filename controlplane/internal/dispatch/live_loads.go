package dispatch

import (
	"context"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// liveLoadDemand knows whether a replica asks for live loads. It is safe for concurrent use.
type liveLoadDemand struct{ last atomic.Pointer[time.Time] }

func (d *liveLoadDemand) request() {
	now := time.Now()
	d.last.Store(&now)
}

func (d *liveLoadDemand) wanted() bool {
	last := d.last.Load()
	return last != nil && time.Since(*last) < model.LiveLoadWanted
}

// watchLiveLoadRequests follows the requests for live loads until the context ends.
func (s *Service) watchLiveLoadRequests(ctx context.Context) error {
	for {
		err := s.options.Store.WatchLiveLoadRequests(ctx, s.liveLoads.request)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.options.Log.Warn("a watch of the store failed; it starts again", "of", "requests for live loads", "problem", err)
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatInterval):
		}
	}
}

// liveLoad stores what a heartbeat counts if a replica asks for it. known are the loads of the gateway's own volumes.
func (g *gatewayStream) liveLoad(ctx context.Context, beat *pb.StreamHeartbeat, known []*pb.VolumeLoad) error {
	if !g.service.liveLoads.wanted() || time.Since(g.lastLiveLoad) < model.LiveLoadInterval-heartbeatInterval/2 {
		return nil
	}
	g.lastLiveLoad = time.Now()
	load := model.LiveLoad{Clock: time.Duration(beat.GetBootTimeMs()) * time.Millisecond, Sessions: beat.GetSessions(),
		BusyPermille: beat.GetBusyPermille(), Volumes: map[string]model.VolumeCounts{}, Hosts: g.knownHosts(beat.GetHostLoads())}
	for _, l := range known {
		if l.GetCommands() == 0 && l.GetInProgress() == 0 {
			continue
		}
		load.Volumes[l.GetUid()] = model.VolumeCounts{Commands: l.GetCommands(), Reads: l.GetReads(), Writes: l.GetWrites(),
			ReadBytes: l.GetReadBytes(), WriteBytes: l.GetWriteBytes(), ReadTime: time.Duration(l.GetReadTimeNs()),
			WriteTime: time.Duration(l.GetWriteTimeNs()), InProgress: l.GetInProgress()}
	}
	return g.connection.ObserveLiveLoad(ctx, load)
}

// knownHosts returns the counts of hosts that exist, by uid.
func (g *gatewayStream) knownHosts(loads []*pb.HostLoad) map[string]model.HostCounts {
	known := map[string]bool{}
	g.service.options.View.Read(func(o *objects.Objects) {
		for _, host := range o.Hosts {
			known[host.Meta.UID] = true
		}
	})
	counts := map[string]model.HostCounts{}
	for _, l := range loads {
		if !known[l.GetHostUid()] {
			g.ignore("host load", l.GetHostUid())
			continue
		}
		counts[l.GetHostUid()] = model.HostCounts{Sessions: l.GetSessions(), Reads: l.GetReads(), Writes: l.GetWrites(), Others: l.GetOthers(),
			ReadBytes: l.GetReadBytes(), WriteBytes: l.GetWriteBytes(), Answered: l.GetAnswered(),
			AnsweredTime: time.Duration(l.GetAnsweredTimeNs()), InProgress: l.GetInProgress()}
	}
	return counts
}
