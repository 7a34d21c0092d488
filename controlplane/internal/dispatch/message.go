package dispatch

import (
	"context"
	"errors"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// handleMessage stores the content of a message. For a message about a volume it stores `observed` instead. An error ends the
// stream. A store that accepts no writes does not end it, because the gateway continues to serve without the store (R3). Then the
// stream ends once the store is back, and the gateway sends everything again over its next stream.
func (g *gatewayStream) handleMessage(ctx context.Context, message *pb.ConnectRequest, observed []*pb.VolumeObserved) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	// Any message proves that the gateway is alive: its heartbeat may be queued behind a thousand other messages.
	if err := g.streamError(g.keepAlive(ctx)); err != nil {
		return err
	}
	if err := g.requestResync(ctx); err != nil {
		return err
	}
	var err error
	switch m := message.GetMessage().(type) {
	case *pb.ConnectRequest_Ack:
		err = g.acknowledged(ctx, m.Ack)
	case *pb.ConnectRequest_Heartbeat:
		err = g.heartbeat(ctx, m.Heartbeat)
	case *pb.ConnectRequest_VolumeObserved:
		err = g.connection.ObserveVolumes(ctx, g.volumeReports(observed))
	case *pb.ConnectRequest_SessionsObserved:
		if err := sessionsWithin(m.SessionsObserved); err != nil {
			return err
		}
		err = g.sessions.record(ctx, g, m.SessionsObserved)
	case *pb.ConnectRequest_PeerObserved:
		p := m.PeerObserved
		if !g.knownPeer(p.GetNumber()) {
			break
		}
		peer := model.GatewayRef{Number: p.GetNumber(), Incarnation: p.GetIncarnation()}
		err = g.connection.ObservePeer(ctx, model.PeerReport{Peer: peer, Reach: reachOf(p.GetReach()),
			Silent: time.Duration(p.GetSilentMs()) * time.Millisecond, Refusal: shortened(p.GetRefusal())})
	case *pb.ConnectRequest_PoolObserved:
		p := m.PoolObserved
		if !g.concernsPool(p.GetUid()) {
			g.ignore("pool", p.GetUid())
			break
		}
		takenOut := map[string]string{}
		for _, device := range p.GetTakenOutDevices()[:min(len(p.GetTakenOutDevices()), model.MaxPoolDevices)] {
			takenOut[device.GetLocation()] = device.GetPath()
		}
		err = g.connection.ObservePool(ctx, model.PoolReport{UID: p.GetUid(), CapacityBytes: p.GetCapacityBytes(),
			UsedBytes: p.GetUsedBytes(), SnapshotsSupported: p.GetSnapshotsSupported(), Problem: shortened(p.GetProblem()),
			UnusableDevices: p.GetUnusableDevices()[:min(len(p.GetUnusableDevices()), model.MaxPoolDevices)], TakenOut: takenOut,
			Marker: clip(p.GetMarker(), model.MaxMarker), Adoptions: p.GetAdoptions(), Unidentified: p.GetUnidentified(),
			MaxImageBytes: p.GetMaxImageBytes(), ListsImages: p.GetListsImages()})
	case *pb.ConnectRequest_ReservationCommit:
		g.apart(func(ctx context.Context) { g.commitReservations(ctx, m.ReservationCommit) })
	case *pb.ConnectRequest_ReservationLoad:
		g.apart(func(ctx context.Context) { g.loadReservations(ctx, m.ReservationLoad) })
	case *pb.ConnectRequest_RadosClientCommit:
		g.apart(func(ctx context.Context) { g.recordRadosClient(ctx, m.RadosClientCommit) })
	case *pb.ConnectRequest_JobResult:
		r := m.JobResult
		err = g.connection.StoreJobResult(ctx, r.GetId(), model.JobResult{AttemptID: r.GetAttempt(),
			DonePermille: r.GetDonePermille(), Problem: shortened(r.GetProblem()), Unsupported: r.GetUnsupported(), SizeBytes: r.GetSizeBytes(),
			Images: r.GetImages()[:min(len(r.GetImages()), model.MaxImagesListed)]})
	case *pb.ConnectRequest_LoginFailuresObserved:
		err = g.hostFaults(ctx, faultsOfLogins(m.LoginFailuresObserved))
	case *pb.ConnectRequest_HostFaultsObserved:
		err = g.hostFaults(ctx, m.HostFaultsObserved)
	case *pb.ConnectRequest_Hello:
		return status.Error(codes.InvalidArgument, "a stream has one hello")
	default: // a newer protocol
	}
	return g.verdict(err)
}

// keepAlive records in the store that the gateway is alive, at every heartbeat and any other message.
func (g *gatewayStream) keepAlive(ctx context.Context) error {
	if time.Since(g.lastKeepAlive) < heartbeatInterval/2 {
		return nil
	}
	g.lastKeepAlive = time.Now()
	return g.connection.KeepAlive(ctx)
}

// verdict returns the error that ends the stream after a failed store. If the stream continues, it records that a message was not
// stored.
func (g *gatewayStream) verdict(err error) error {
	g.unstored = g.unstored || err != nil && !store.RefusedForGood(err)
	return g.streamError(err)
}

// streamError returns the error that ends the stream; nil: the stream continues.
func (g *gatewayStream) streamError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrReplaced):
		return replacedStatus(g.name, err)
	case errors.Is(err, store.ErrExpired):
		return status.Errorf(codes.Unavailable, "gateway %s: %v", g.name, err)
	}
	g.log.Warn("the store did not take what the gateway says", "problem", err)
	return nil
}

// requestResync ends the stream if a message was not stored and the store accepts writes again, so that the gateway sends
// everything again. It waits for the store, because no gateway gets another stream without it.
func (g *gatewayStream) requestResync(ctx context.Context) error {
	if !g.unstored || time.Since(g.probed) < heartbeatInterval/2 {
		return nil
	}
	g.probed = time.Now()
	switch err := g.connection.Writable(ctx); {
	case err == nil:
		return status.Error(codes.Unavailable, "what was said while the store was away is not stored: connect again")
	case errors.Is(err, store.ErrReplaced), errors.Is(err, store.ErrExpired):
		return g.streamError(err)
	}
	return nil // verdict has logged the reason
}

func (g *gatewayStream) acknowledged(ctx context.Context, ack *pb.StreamAck) error {
	for _, refusal := range ack.GetRefused() {
		key := refusal.GetKey()
		g.log.Warn("the gateway could not apply an object", "kind", key.GetKind(), "id", key.GetId(), "reason", refusal.GetReason())
	}
	g.applied.receive(ack)
	return g.tellApplied(ctx)
}

// tellApplied stores what the gateway has applied, if that has changed.
func (g *gatewayStream) tellApplied(ctx context.Context) error {
	reports, changed := g.applied.reports(time.Now())
	if !changed {
		return nil
	}
	err := g.connection.ObserveApplied(ctx, reports)
	if err != nil {
		g.applied.markUnreported()
	}
	return err
}

func (g *gatewayStream) heartbeat(ctx context.Context, beat *pb.StreamHeartbeat) error {
	if err := g.tellApplied(ctx); err != nil {
		return err
	}
	report := model.LoadReport{Sessions: beat.GetSessions(), BusyPermille: beat.GetBusyPermille(),
		AppliedVersion: g.applied.version()}
	known := g.knownLoads(beat.GetLoads())
	for _, load := range known {
		report.Volumes = append(report.Volumes, model.VolumeLoad{UID: load.GetUid(), Commands: load.GetCommands(), Bytes: load.GetBytes()})
	}
	if err := g.connection.ObserveLoads(ctx, report); err != nil {
		return err
	}
	return g.liveLoad(ctx, beat, known)
}

func volumeObservation(v *pb.VolumeObserved) model.VolumeObservation {
	states := map[pb.VolumeState]model.ObservedState{
		pb.VolumeState_VOLUME_STATE_SERVING:  model.VolumeServing,
		pb.VolumeState_VOLUME_STATE_RELEASED: model.VolumeReleased,
		pb.VolumeState_VOLUME_STATE_FAILED:   model.VolumeFailed,
		pb.VolumeState_VOLUME_STATE_FENCED:   model.VolumeFenced,
		pb.VolumeState_VOLUME_STATE_LOCKED:   model.VolumeLocked,
	}
	return model.VolumeObservation{Epoch: v.GetEpoch(), Order: v.GetOrder(), State: states[v.GetState()],
		Reason: shortened(v.GetReason()), CapacityBytes: v.GetCapacityBytes(), AllocatedBytes: v.GetAllocatedBytes(),
		MediumProblem: shortened(v.GetMediumProblem()), MediumNotReady: v.GetMediumNotReady(),
		MediumStuck: v.GetMediumStuck(), MediumErrors: v.GetMediumErrors()}
}

func reachOf(reach pb.PeerReach) model.Reach {
	switch reach {
	case pb.PeerReach_PEER_REACH_REFUSED:
		return model.PeerRefused
	case pb.PeerReach_PEER_REACH_SILENT:
		return model.PeerSilent
	}
	return model.PeerConnected
}

// apart handles a request about reservations concurrently with the stream, because it waits for the store. A gateway with too
// many concurrent requests waits.
func (g *gatewayStream) apart(work func(context.Context)) {
	select {
	case g.commits <- struct{}{}:
	case <-g.stream.Context().Done():
		return
	}
	g.working.Add(1)
	go func() {
		defer g.working.Done()
		defer func() { <-g.commits }()
		ctx, cancel := context.WithTimeout(g.stream.Context(), storeTimeout)
		defer cancel()
		work(ctx)
	}()
}

func (g *gatewayStream) commitReservations(ctx context.Context, c *pb.ReservationCommit) {
	err := g.mayCommit(ctx, c.GetVolumeUid(), c.GetEpoch())
	if err == nil {
		err = g.service.options.Store.CommitReservations(ctx, c.GetVolumeUid(), c.GetEpoch(), c.GetExpectedGeneration(), c.GetState())
	}
	outcome := &pb.ReservationOutcome{RequestId: c.GetRequestId()}
	outcome.Result, outcome.Reason = commitResult(err)
	g.answer(g.stream.Context(), &pb.ConnectResponse{Message: &pb.ConnectResponse_ReservationOutcome{ReservationOutcome: outcome}})
}

func (g *gatewayStream) loadReservations(ctx context.Context, l *pb.ReservationLoad) {
	var kept model.Reservations
	err := g.loadable(ctx, l.GetVolumeUid(), l.GetEpoch())
	if err == nil {
		kept, err = g.service.options.Store.LoadReservations(ctx, l.GetVolumeUid(), l.GetEpoch())
	}
	state := &pb.ReservationState{RequestId: l.GetRequestId(), Generation: kept.Generation, State: kept.State}
	state.Result, _ = commitResult(err)
	g.answer(g.stream.Context(), &pb.ConnectResponse{Message: &pb.ConnectResponse_ReservationState{ReservationState: state}})
}

func (g *gatewayStream) recordRadosClient(ctx context.Context, c *pb.RadosClientCommit) {
	var err error
	if g.concernsPool(c.GetPoolUid()) {
		err = g.connection.RecordRadosClient(ctx, c.GetPoolUid(), c.GetClient())
	} else {
		g.ignore("client", c.GetPoolUid())
		err = model.Precondition("pool", "gateway %s does not receive pool %.64q", g.name, c.GetPoolUid())
	}
	outcome := &pb.RadosClientOutcome{RequestId: c.GetRequestId()}
	outcome.Result, outcome.Reason = commitResult(err)
	g.answer(g.stream.Context(), &pb.ConnectResponse{Message: &pb.ConnectResponse_RadosClientOutcome{RadosClientOutcome: outcome}})
}

// commitResult returns only proven results (R3).
func commitResult(err error) (pb.CommitResult, string) {
	var unmet *model.PreconditionError
	switch {
	case err == nil:
		return pb.CommitResult_COMMIT_RESULT_COMMITTED, ""
	case errors.Is(err, model.ErrTooManyClients), errors.As(err, &unmet):
		return pb.CommitResult_COMMIT_RESULT_NOT_COMMITTED, err.Error()
	case errors.Is(err, model.ErrFenced), errors.Is(err, model.ErrClientFenced):
		return pb.CommitResult_COMMIT_RESULT_FENCED, err.Error()
	case errors.Is(err, model.ErrGeneration):
		return pb.CommitResult_COMMIT_RESULT_CONFLICT, err.Error()
	}
	return pb.CommitResult_COMMIT_RESULT_UNSPECIFIED, err.Error()
}

// counterInterval is the shortest interval at which a session's counters are stored. A gateway reports them every 10 s and does not
// repeat a report, so a report that is dropped here may be the last of an idle session. The interval is half of the gateway's: it
// drops only the reports of a gateway that sends too many, and no report that was delayed less than 5 s.
const counterInterval = 5 * time.Second

// sessionRecorder maintains the register of a gateway's sessions. It stores changes of counters at most every counterInterval.
type sessionRecorder struct {
	stored map[uint32]storedSession
}

// storedSession is a stored session. A TSIH is reused.
type storedSession struct {
	// When a change of nothing but counters was last stored; zero if none was.
	counted time.Time
	session *model.Session
}

func (r *sessionRecorder) record(ctx context.Context, g *gatewayStream, observed *pb.SessionsObserved) error {
	own, err := g.ownSessions(ctx, observed.GetPut())
	if err != nil {
		return err
	}
	now := time.Now()
	if observed.GetFull() {
		r.stored = nil
	}
	var put []*model.Session
	changed := map[uint32]storedSession{}
	for _, reported := range own {
		session := sessionFrom(g.name, reported)
		known, stored := r.stored[session.TSIH]
		next := storedSession{session: session}
		if stored && onlyCounts(known.session, session) {
			if now.Sub(known.counted) < counterInterval {
				continue
			}
			next.counted = now
		}
		put = append(put, session)
		changed[session.TSIH] = next
	}
	if err := g.connection.StoreSessions(ctx, observed.GetFull(), put, observed.GetEnded()); err != nil {
		return err
	}
	if r.stored == nil {
		r.stored = map[uint32]storedSession{}
	}
	maps.Copy(r.stored, changed)
	for _, tsih := range observed.GetEnded() {
		delete(r.stored, tsih)
	}
	return nil
}

// onlyCounts reports whether a session equals the stored session of its TSIH, for the same host, except for counters.
func onlyCounts(stored, session *model.Session) bool {
	return session.Initiator == stored.Initiator && session.ISID == stored.ISID && session.TargetIQN == stored.TargetIQN &&
		session.HostUID == stored.HostUID && session.LoginTime.Equal(stored.LoginTime)
}

func sessionFrom(gateway string, s *pb.SessionObserved) *model.Session {
	return &model.Session{
		Gateway: gateway, TSIH: s.GetTsih(), TargetIQN: s.GetTargetIqn(), HostUID: s.GetHostUid(),
		Initiator: s.GetInitiator(), ISID: s.GetIsid(), PortalGroupTag: s.GetPortalGroupTag(),
		InitiatorAddress: s.GetInitiatorAddress(), PortalAddress: s.GetPortalAddress(),
		LoginTime: time.UnixMilli(s.GetLoginTimeMs()).UTC(), Parameters: s.GetParameters(),
		Reads: s.GetReads(), Writes: s.GetWrites(), ReadBytes: s.GetReadBytes(), WriteBytes: s.GetWriteBytes(),
		OtherCommands: s.GetOtherCommands(),
	}
}
