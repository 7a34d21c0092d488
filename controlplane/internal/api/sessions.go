package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// sessionList names the list of sessions in its page tokens.
const sessionList = "sessions"

// Sessions serves SessionService.
type Sessions struct {
	pb.UnimplementedSessionServiceServer
	store *store.Store
	view  *view.Cache
}

// NewSessions makes the service.
func NewSessions(s *store.Store, v *view.Cache) *Sessions { return &Sessions{store: s, view: v} }

// GetSession implements SessionService.
func (x *Sessions) GetSession(ctx context.Context, r *pb.GetSessionRequest) (*pb.GetSessionResponse, error) {
	session, version, err := x.find(ctx, r.GetName())
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.GetSessionResponse{Session: x.names(ctx, version, session).show(session)}, nil
}

// ListSessions implements SessionService. The position of a page is the name after which it begins.
func (x *Sessions) ListSessions(ctx context.Context, r *pb.ListSessionsRequest) (*pb.ListSessionsResponse, error) {
	if err := withoutLabels("sessions", r.GetOptions().GetLabelSelector()); err != nil {
		return nil, err
	}
	selected, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	after, err := pagePosition(sessionList, selected.token)
	if err != nil {
		return nil, selected.statusOf(err)
	}
	all, version, err := x.store.Sessions(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	slices.SortFunc(all, func(a, b *model.Session) int { return strings.Compare(a.Name(), b.Name()) })
	names, response := x.names(ctx, version, all...), &pb.ListSessionsResponse{ResourceVersion: version}
	var bytes budget
	for _, session := range all {
		if session.Name() <= after {
			continue
		}
		shown, count := names.show(session), len(response.Sessions)
		if count == selected.size || !bytes.takes(shown) {
			response.NextPageToken = pageToken(sessionList, response.GetSessions()[count-1].GetMeta().GetName())
			break
		}
		response.Sessions = append(response.Sessions, shown)
	}
	return response, nil
}

// WatchSessions implements SessionService.
func (x *Sessions) WatchSessions(r *pb.WatchSessionsRequest, stream pb.SessionService_WatchSessionsServer) error {
	if err := withoutLabels("sessions", r.GetOptions().GetLabelSelector()); err != nil {
		return err
	}
	types := map[store.ChangeType]pb.ChangeType{
		store.Reset: pb.ChangeType_CHANGE_TYPE_RESET, store.Put: pb.ChangeType_CHANGE_TYPE_PUT,
		store.Deleted: pb.ChangeType_CHANGE_TYPE_DELETED, store.Bookmark: pb.ChangeType_CHANGE_TYPE_BOOKMARK,
	}
	tell := func(change store.RecordChange[*model.Session]) error {
		answer := &pb.WatchSessionsResponse{Type: types[change.Type], ResourceVersion: change.Resume}
		if change.Record != nil {
			answer.Session = x.names(stream.Context(), change.Version, change.Record).show(change.Record)
		}
		return stream.Send(answer)
	}
	return statusOf(x.store.WatchSessions(stream.Context(), r.GetOptions().GetResourceVersion(), tell))
}

// EvictSession implements SessionService.
func (x *Sessions) EvictSession(ctx context.Context, r *pb.EvictSessionRequest) (*pb.EvictSessionResponse, error) {
	session, _, err := x.find(ctx, r.GetName())
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.EvictSessionResponse{}, statusOf(x.store.EvictSession(ctx, session, r.GetDryRun()))
}

// find finds a session by `<gateway>.<TSIH>.<ISID>`, and returns the version of the store at which it was read.
func (x *Sessions) find(ctx context.Context, name string) (*model.Session, int64, error) {
	all, version, err := x.store.Sessions(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, session := range all {
		if session.Name() == name {
			return session, version, nil
		}
	}
	return nil, 0, &store.NotFoundError{Kind: "Session", Name: name}
}

// sessionNames are the names of the targets and hosts that gateways identify by IQN and uid.
type sessionNames struct {
	targets, hosts map[string]string
}

// names returns the names for the sessions of an answer, which were stored up to a version. The view may be older than the sessions: if a
// name is missing, names waits for it, for a limited time.
func (x *Sessions) names(ctx context.Context, version int64, sessions ...*model.Session) sessionNames {
	names := x.viewedNames()
	if slices.ContainsFunc(sessions, func(s *model.Session) bool { return !names.know(s) }) {
		ctx, cancel := context.WithTimeout(ctx, currentLimit)
		defer cancel()
		_ = x.view.WaitFor(ctx, version) // otherwise the watches are behind, and uid and IQN are shown
		names = x.viewedNames()
	}
	return names
}

func (x *Sessions) viewedNames() sessionNames {
	names := sessionNames{map[string]string{}, map[string]string{}}
	x.view.Read(func(o *objects.Objects) {
		for name, target := range o.Targets {
			names.targets[target.Spec.IQN] = name
		}
		for name, host := range o.Hosts {
			names.hosts[host.Meta.UID] = name
		}
	})
	return names
}

func (n sessionNames) know(s *model.Session) bool {
	_, target := n.targets[s.TargetIQN]
	_, host := n.hosts[s.HostUID]
	return target && host
}

func (n sessionNames) show(s *model.Session) *pb.Session {
	target, host := s.TargetIQN, s.HostUID
	if name, known := n.targets[s.TargetIQN]; known {
		target = name
	}
	if name, known := n.hosts[s.HostUID]; known {
		host = name
	}
	return &pb.Session{
		Meta: &pb.ObjectMeta{Name: s.Name(), ResourceVersion: s.Version, CreateTime: showTime(s.LoginTime),
			Uid: fmt.Sprintf("%d-%s-%s", s.GatewayNumber, strconv.FormatUint(uint64(s.TSIH), 10), s.ISID)},
		Status: &pb.SessionStatus{
			Gateway: s.Gateway, Target: target, Host: host, Initiator: s.Initiator, Isid: s.ISID, Tsih: s.TSIH,
			PortalGroupTag: s.PortalGroupTag, InitiatorAddress: s.InitiatorAddress, PortalAddress: s.PortalAddress,
			LoginTime: showTime(s.LoginTime), Parameters: s.Parameters,
			Counters: &pb.SessionCounters{Reads: s.Reads, Writes: s.Writes, ReadBytes: s.ReadBytes,
				WriteBytes: s.WriteBytes, OtherCommands: s.OtherCommands},
		},
	}
}
