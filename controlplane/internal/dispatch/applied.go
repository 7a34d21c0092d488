package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// maxUnacknowledged bounds the updates whose acknowledgement is awaited. Gateways apply several together and acknowledge the
	// newest, so older ones are not needed.
	maxUnacknowledged = 16
	// lateAck is the time after which a target that was sent again and not acknowledged no longer counts as applied in its
	// previous form. An earlier acknowledgement causes no write.
	lateAck = 2 * time.Second
)

// acknowledged tracks which parts of its desired state a gateway reports as applied. The sending and the receiving side of the
// stream both use it.
type acknowledged struct {
	mutex sync.Mutex
	// unanswered are the updates that were sent and not acknowledged, oldest first. now is the desired state, have the
	// acknowledged one.
	unanswered []sentState
	now, have  sentState
	refused    map[desired.Key]string
	// exports are the reported exports of applied targets, by IQN.
	exports map[string]string
	changed bool
}

// sentState is the part of a sent state that acknowledgements refer to.
type sentState struct {
	version uint64
	at      time.Time
	targets map[string]sentTarget // by IQN
	volumes map[string]string     // names by uid
	gateway string                // its uid
}

type sentTarget struct {
	uid, export string
	digest      []byte
	volumes     []string // uids of its LUNs
}

// sentStateOf computes it from a state and the objects from which that was built. Volumes are many and often change while their
// set stays the same. So `before`, of a state with the same keys, provides the unchanged part.
func sentStateOf(o *objects.Objects, gateway *model.Gateway, state desired.State, before sentState, sameKeys bool) sentState {
	t := sentState{targets: map[string]sentTarget{}, volumes: before.volumes, gateway: gateway.Meta.UID}
	if !sameKeys || before.volumes == nil {
		t.volumes = map[string]string{}
		for _, object := range state {
			if volume := object.GetVolume(); volume != nil {
				t.volumes[volume.GetUid()] = volume.GetName()
			}
		}
	}
	for _, target := range o.Targets {
		object := state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_TARGET, ID: target.Spec.IQN}]
		if object == nil {
			continue
		}
		entry := sentTarget{uid: target.Meta.UID, export: target.Export(), digest: object.GetDigest()}
		if was, known := before.targets[target.Spec.IQN]; known && bytes.Equal(was.digest, entry.digest) {
			entry.volumes = was.volumes
		} else {
			for _, lun := range object.GetTarget().GetLuns() {
				entry.volumes = append(entry.volumes, lun.GetVolumeUid())
			}
		}
		t.targets[target.Spec.IQN] = entry
	}
	return t
}

// sending records the state that the gateway must reach, and that an update to it is sent; version 0: none is needed.
func (a *acknowledged) sending(t sentState) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.now, a.changed = t, true
	if t.version != 0 {
		a.unanswered = append(a.unanswered, t)
		a.unanswered = a.unanswered[max(0, len(a.unanswered)-maxUnacknowledged):]
	}
}

// receive records an acknowledgement. If this stream did not send its version, it belongs to an earlier stream.
func (a *acknowledged) receive(ack *pb.StreamAck) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	at := slices.IndexFunc(a.unanswered, func(t sentState) bool { return t.version == ack.GetVersion() })
	if at < 0 && (a.have.version == 0 || a.have.version != ack.GetVersion()) {
		return
	}
	if at >= 0 {
		a.have = a.unanswered[at]
		a.unanswered = slices.Delete(a.unanswered, 0, at+1)
	}
	a.refused = map[desired.Key]string{}
	for _, refusal := range ack.GetRefused() {
		key := desired.Key{Kind: refusal.GetKey().GetKind(), ID: refusal.GetKey().GetId()}
		a.refused[key] = cmp.Or(shortened(refusal.GetReason()), "the gateway does not say why")
	}
	a.changed = true
}

// version returns the version of the desired state that the gateway has applied; 0: it has not acknowledged any over this stream.
func (a *acknowledged) version() uint64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.have.version
}

// reports returns the reports to store, if they may have changed.
func (a *acknowledged) reports(now time.Time) ([]model.AppliedReport, bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	late := len(a.unanswered) > 0 && now.Sub(a.unanswered[0].at) >= lateAck
	if a.have.version == 0 || !a.changed && !late {
		return nil, false // before the first acknowledgement, the stored reports of an earlier stream may still be right
	}
	a.changed = false
	exports := map[string]string{}
	var all []model.AppliedReport
	for iqn, target := range a.now.targets {
		report := model.AppliedReport{Kind: model.KindTarget, UID: target.uid, Refused: a.refusal(iqn, target)}
		if report.Refused == "" {
			report.Export = a.export(iqn, target, late)
			exports[iqn] = report.Export
		}
		all = append(all, report)
	}
	a.exports = exports
	return append(all, a.otherRefusals()...), true
}

// markUnreported makes the reports due again, because they could not be stored.
func (a *acknowledged) markUnreported() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.changed = true
}

// export returns the export of a target that counts as applied.
func (a *acknowledged) export(iqn string, target sentTarget, late bool) string {
	have, known := a.have.targets[iqn]
	lacks := func(uid string) bool { _, there := a.have.volumes[uid]; return !there }
	switch {
	case known && bytes.Equal(have.digest, target.digest) && !slices.ContainsFunc(target.volumes, lacks):
		return target.export
	case late:
		return ""
	}
	return a.exports[iqn]
}

// refusal returns why a target is not applied: it or one of its volumes was refused.
func (a *acknowledged) refusal(iqn string, target sentTarget) string {
	var all []string
	if reason := a.refused[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_TARGET, ID: iqn}]; reason != "" {
		all = append(all, reason)
	}
	for _, uid := range target.volumes {
		if reason := a.refused[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_VOLUME, ID: uid}]; reason != "" {
			all = append(all, "volume "+a.now.volumes[uid]+": "+reason)
		}
	}
	return strings.Join(all, "; ")
}

// otherRefusals returns the refusals of volumes, and of objects that concern only the gateway.
func (a *acknowledged) otherRefusals() []model.AppliedReport {
	var all []model.AppliedReport
	var own []string
	gateway := model.AppliedReport{Kind: model.KindGateway, UID: a.now.gateway}
	for key, reason := range a.refused {
		switch {
		case key.Kind == pb.ObjectKind_OBJECT_KIND_TARGET:
		case key.Kind == pb.ObjectKind_OBJECT_KIND_VOLUME:
			if _, known := a.now.volumes[key.ID]; known {
				all = append(all, model.AppliedReport{Kind: model.KindVolume, UID: key.ID, Refused: reason})
			}
		default:
			what := strings.ToLower(strings.TrimPrefix(key.Kind.String(), "OBJECT_KIND_"))
			own = append(own, strings.TrimSpace(what+" "+key.ID)+": "+reason)
			switch key.Kind {
			case pb.ObjectKind_OBJECT_KIND_LISTENER:
				gateway.ClosedPortals++
			case pb.ObjectKind_OBJECT_KIND_SETTINGS: // a gateway refuses nothing of them but the forwarding port
				gateway.ClosedForwarding = reason
			}
		}
	}
	if len(own) > 0 {
		slices.Sort(own)
		gateway.Refused = strings.Join(own, "; ")
		all = append(all, gateway)
	}
	return all
}
