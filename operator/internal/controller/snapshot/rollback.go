package snapshot

import (
	"context"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	sluice "sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons of the condition RolledBack. Those of the control plane's Events are reasons, too.
const (
	reasonDone       = "RolledBack"
	reasonFailed     = "RollBackFailed"
	reasonUnderWay   = "RollingBack"
	reasonOtherEpoch = "OtherEpoch"
	reasonUnknown    = "OutcomeNotKnown"
)

// underWay is the interval at which a volume with a rollback in progress is read.
const underWay = 2 * time.Second

type snapshots struct {
	snapshots pb.SnapshotServiceClient
	volumes   pb.VolumeServiceClient
	events    pb.EventServiceClient
}

// rollBack rolls the volume back to the snapshot, once for each value of the annotation, which is the volume's epoch. The control
// plane itself requires no epoch. But a volume that can be rolled back has no owner, so its epoch stays until then.
func (s *snapshots) rollBack(ctx context.Context, r *v1alpha1.Snapshot, have *pb.Snapshot) error {
	asked := r.Annotations[v1alpha1.AnnotationRollBack]
	if asked == "" {
		r.Status.RolledBackAtEpoch = ""
		apimeta.RemoveStatusCondition(&r.Status.Conditions, v1alpha1.ConditionRolledBack)
		return nil
	}
	got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: have.GetSpec().GetVolume()})
	if err != nil {
		return err
	}
	volume := got.GetVolume()
	if asked == r.Status.RolledBackAtEpoch {
		return s.follow(ctx, r, volume)
	}
	if epoch := strconv.FormatUint(volume.GetStatus().GetEpoch(), 10); asked != epoch {
		condition(r, false, reasonOtherEpoch, "volume "+r.Spec.Volume+" is at epoch "+epoch+", not "+strconv.Quote(asked)+": hosts may "+
			"have written since. If what is in it now may go, annotate this snapshot with "+v1alpha1.AnnotationRollBack+"="+epoch)
		return &mirror.RequeueAfter{} // the epoch may yet be reached
	}
	if _, err := s.snapshots.RollBackSnapshot(ctx, &pb.RollBackSnapshotRequest{Name: mirror.Name(r)}); err != nil {
		refusal := mirror.Explain(err)
		if !refusal.Lasting() {
			return err
		}
		condition(r, false, refusal.Reason, refusal.Message)
		return &mirror.RequeueAfter{}
	}
	r.Status.RolledBackAtEpoch = asked
	condition(r, false, reasonUnderWay, "the control plane has been asked")
	return &mirror.RequeueAfter{Wait: underWay}
}

// follow reports the progress of a requested rollback.
func (s *snapshots) follow(ctx context.Context, r *v1alpha1.Snapshot, volume *pb.Volume) error {
	if volume.GetStatus().GetRollingBack() {
		message := "the control plane has been asked"
		for _, c := range volume.GetStatus().GetConditions() {
			if c.GetType() == v1alpha1.ConditionProgressing && c.GetMessage() != "" {
				message = c.GetMessage()
			}
		}
		condition(r, false, reasonUnderWay, message)
		return &mirror.RequeueAfter{Wait: underWay}
	}
	if c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionRolledBack); c != nil && c.Reason != reasonUnderWay {
		return nil // reported already
	}
	end, err := s.outcome(ctx, volume.GetMeta().GetName())
	switch {
	case err != nil:
		return err
	case end == nil:
		condition(r, false, reasonUnknown, "it is over, and the control plane does not know any more how it ended")
	default:
		condition(r, end.GetReason() == reasonDone, end.GetReason(), end.GetMessage())
	}
	return nil
}

// outcome returns the newest event about the end of a rollback of a volume.
func (s *snapshots) outcome(ctx context.Context, volume string) (*pb.Event, error) {
	var newest *pb.Event
	request := &pb.ListEventsRequest{Kind: "Volume", Name: volume}
	for event, err := range sluice.All(ctx, s.events.ListEvents, request, (*pb.ListEventsResponse).GetEvents) {
		if err != nil {
			return nil, err
		}
		if event.GetReason() == reasonDone || event.GetReason() == reasonFailed {
			newest = event
		}
	}
	return newest, nil
}

func condition(r *v1alpha1.Snapshot, done bool, reason, message string) {
	status := metav1.ConditionFalse
	if done {
		status = metav1.ConditionTrue
	}
	mirror.Condition(r, v1alpha1.ConditionRolledBack, status, reason, message, r.GetGeneration())
}
