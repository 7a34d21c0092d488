package api

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// kind converts one kind of object between messages (P) and the model (T). The services' methods use its methods.
type kind[T model.Object, P proto.Message] struct {
	objects *store.Collection[T]
	// read converts a message to an object, without output-only fields.
	read func(P) T
	// show converts an object to a message, without its secrets.
	show func(T) P
	// fill sets the fields that depend on other objects, in all messages of one answer; nil: there are none.
	fill func(context.Context, []P) error
	// keep sets the fields that an update leaves empty because they cannot be read back: secrets.
	keep    func(from, to T)
	callers Callers
	// shared are the fields that the CSI driver may change in objects that it did not create.
	shared []string
}

func (k kind[T, P]) create(ctx context.Context, message P, dryRun bool) (P, error) {
	object := k.read(message)
	if k.callers.limited(ctx) {
		if err := mayCreate(object.Metadata()); err != nil {
			var none P
			return none, err
		}
	}
	if err := k.objects.Create(ctx, object, dryRun); err != nil {
		var none P
		return none, statusOf(err)
	}
	return k.filled(ctx, object)
}

// filled returns the message of an object, including fill.
func (k kind[T, P]) filled(ctx context.Context, object T) (P, error) {
	message := k.show(object)
	if k.fill == nil {
		return message, nil
	}
	return message, statusOf(k.fill(ctx, []P{message}))
}

func (k kind[T, P]) get(ctx context.Context, name string) (P, error) {
	object, err := k.objects.Get(ctx, name)
	if err != nil {
		var none P
		return none, statusOf(err)
	}
	return k.filled(ctx, object)
}

// list returns messages, the next page's token and the list's version.
func (k kind[T, P]) list(ctx context.Context, r listRequest) ([]P, string, int64, error) {
	selected, err := pageOf(r)
	if err != nil {
		return nil, "", 0, err
	}
	page, err := k.objects.List(ctx, store.ListOptions{
		PageSize: selected.size, PageToken: selected.token, Labels: r.GetOptions().GetLabelSelector(),
	})
	if err != nil {
		return nil, "", 0, selected.statusOf(err)
	}
	messages := make([]P, len(page.Objects))
	for i, object := range page.Objects {
		messages[i] = k.show(object)
	}
	if k.fill != nil {
		if err := k.fill(ctx, messages); err != nil {
			return nil, "", 0, statusOf(err)
		}
	}
	return messages, page.Next, page.Version, nil
}

// update takes the fields in the mask from the message, or all without a mask. With a mask and no version, it changes the stored
// object, and repeats that if the object changes meanwhile.
func (k kind[T, P]) update(ctx context.Context, message P, mask *fieldmaskpb.FieldMask, dryRun bool) (P, error) {
	var none P
	wanted := k.read(message)
	for range updateAttempts {
		stored, err := k.objects.Get(ctx, wanted.Metadata().Name)
		if err != nil {
			return none, statusOf(err)
		}
		object := k.read(message)
		if len(mask.GetPaths()) > 0 {
			merged := k.show(stored)
			if err := overwrite(merged, message, mask); err != nil {
				return none, statusOf(err)
			}
			object = k.read(merged)
			object.Metadata().Version = wanted.Metadata().Version
		}
		if k.keep != nil {
			k.keep(stored, object)
		}
		asked := object.Metadata().Version
		if k.callers.limited(ctx) {
			if asked != 0 && asked != stored.Metadata().Version {
				// The checked version must be the replaced one.
				return none, status.Errorf(codes.Aborted, "%q has changed since you read it: read it again and redo the change",
					wanted.Metadata().Name)
			}
			if err := mayUpdate(stored.Metadata(), object.Metadata(), k.show(stored), k.show(object), k.shared); err != nil {
				return none, err
			}
		}
		if asked == 0 {
			object.Metadata().Version = stored.Metadata().Version
		}
		err = k.objects.Update(ctx, object, dryRun)
		if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && asked == 0 {
			continue
		}
		if err != nil {
			return none, statusOf(err)
		}
		return k.filled(ctx, object)
	}
	return none, statusOf(store.ErrBusy)
}

const updateAttempts = 16

func (k kind[T, P]) delete(ctx context.Context, name string, options *pb.DeleteOptions, dryRun bool) (P, error) {
	guard := store.DeleteOptions{Version: options.GetResourceVersion(), UID: options.GetUid(), DryRun: dryRun}
	if k.callers.limited(ctx) {
		guard.Allowed = mayDelete
	}
	object, err := k.objects.Delete(ctx, name, guard)
	if err != nil {
		var none P
		return none, statusOf(err)
	}
	return k.filled(ctx, object)
}

// watch sends changes until the client ends the call. An object that no longer has the selected labels is reported as deleted.
func watch[T model.Object, P proto.Message, R any](k kind[T, P], stream grpc.ServerStreamingServer[R],
	options *pb.WatchOptions, response func(pb.ChangeType, P, int64) *R,
) error {
	labels := options.GetLabelSelector()
	tell := func(change store.Change[T]) error {
		var none P
		switch change.Type {
		case store.Reset:
			return stream.Send(response(pb.ChangeType_CHANGE_TYPE_RESET, none, change.Resume))
		case store.Bookmark:
			return stream.Send(response(pb.ChangeType_CHANGE_TYPE_BOOKMARK, none, change.Resume))
		}
		changeType := pb.ChangeType_CHANGE_TYPE_PUT
		if change.Type == store.Deleted || !change.Object.Metadata().Matches(labels) {
			changeType = pb.ChangeType_CHANGE_TYPE_DELETED
		}
		message, err := k.filled(stream.Context(), change.Object)
		if err != nil {
			return err
		}
		return stream.Send(response(changeType, message, change.Resume))
	}
	return statusOf(k.objects.Watch(stream.Context(), options.GetResourceVersion(), tell))
}

func readMeta(m *pb.ObjectMeta) model.Meta {
	return model.Meta{Name: m.GetName(), Version: m.GetResourceVersion(), Labels: m.GetLabels()}
}

func showMeta(m *model.Meta) *pb.ObjectMeta {
	shown := &pb.ObjectMeta{
		Name: m.Name, Uid: m.UID, ResourceVersion: m.Version, Generation: m.Generation,
		CreateTime: showTime(m.CreateTime), Labels: m.Labels,
	}
	if m.DeleteTime != nil {
		shown.DeleteTime = showTime(*m.DeleteTime)
	}
	return shown
}

func showTime(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

func showConditions(conditions []model.Condition) []*pb.Condition {
	shown := make([]*pb.Condition, len(conditions))
	for i, c := range conditions {
		shown[i] = &pb.Condition{
			Type: c.Type, Status: showConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: showTime(c.LastTransitionTime),
		}
	}
	return shown
}

func showConditionStatus(status model.ConditionStatus) pb.ConditionStatus {
	switch status {
	case model.ConditionTrue:
		return pb.ConditionStatus_CONDITION_STATUS_TRUE
	case model.ConditionFalse:
		return pb.ConditionStatus_CONDITION_STATUS_FALSE
	}
	return pb.ConditionStatus_CONDITION_STATUS_UNKNOWN
}
