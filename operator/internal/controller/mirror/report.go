package mirror

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons for which a resource waits or is ready.
const (
	reasonAccepted = "Accepted"
	reasonSettled  = "Settled"
	reasonWaiting  = "Waiting"
	// reasonRefused: the Kubernetes API refuses a request that the operator must make for the resource.
	reasonRefused = "KubernetesRefused"
	// reasonUnfinished: the operator has not yet completed its work for the resource.
	reasonUnfinished = "Unfinished"
)

// maxMessage bounds a condition's message, in bytes. The API server accepts as many characters.
const maxMessage = 32768

// conditioned is a status of the control plane with conditions.
type conditioned interface{ GetConditions() []*pb.Condition }

// show updates the status from the object.
func (m *Mirror[R, P]) show(r R, have P) {
	if m.Show != nil {
		m.Show(r, have)
	}
	message := have.ProtoReflect()
	status, _ := message.Get(message.Descriptor().Fields().ByName("status")).Message().Interface().(conditioned)
	reported := map[string]bool{}
	if status != nil {
		for _, c := range status.GetConditions() {
			reported[c.GetType()] = true
			seen := r.GetGeneration()
			if r.Common().ObservedGeneration != seen || c.GetObservedGeneration() < have.GetMeta().GetGeneration() {
				seen = observed(r, c.GetType()) // the control plane has not yet processed the last change
			}
			Condition(r, c.GetType(), convert.ConditionStatus(c.GetStatus()), c.GetReason(), c.GetMessage(), seen)
		}
	}
	switch {
	case reported[v1alpha1.ConditionReady]:
	case m.HasReadyCondition:
		Condition(r, v1alpha1.ConditionReady, metav1.ConditionUnknown, reasonAccepted,
			"the control plane has it, and has yet to look at it", r.GetGeneration())
	default:
		Condition(r, v1alpha1.ConditionReady, metav1.ConditionTrue, reasonAccepted, "the control plane has it", r.GetGeneration())
	}
	if !reported[v1alpha1.ConditionProgressing] && !m.Progresses {
		Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionFalse, reasonSettled, "", r.GetGeneration())
	}
}

func observed(r v1alpha1.Resource, kind string) int64 {
	if c := apimeta.FindStatusCondition(r.Common().Conditions, kind); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

// Condition sets a condition of a resource, for a generation of it.
func Condition(r v1alpha1.Resource, kind string, status metav1.ConditionStatus, reason, message string, generation int64) {
	if reason == "" {
		reason = "Unspecified" // the API server requires one
	}
	apimeta.SetStatusCondition(&r.Common().Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate(message, maxMessage), ObservedGeneration: generation,
	})
}

// notReady reports the problem that prevents the resource from reaching its specification. It is checked again.
func notReady(r v1alpha1.Resource, problem *Problem) {
	Condition(r, v1alpha1.ConditionReady, metav1.ConditionFalse, problem.Reason, problem.Message, r.GetGeneration())
	Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionTrue, cmp.Or(problem.Progressing, reasonWaiting), problem.Message, r.GetGeneration())
}

// unreachable reports that the state is unknown: losing the control plane stops no I/O (R3).
func unreachable(r v1alpha1.Resource, problem *Problem) {
	Condition(r, v1alpha1.ConditionReady, metav1.ConditionUnknown, problem.Reason, problem.Message, r.GetGeneration())
}

// refusedByKubernetes reports an error of the Kubernetes API. The conditions of the control plane's object do not include it:
// without this, the resource would be Ready while a part of it is missing in the cluster. A temporary error leaves the condition
// unchanged.
func refusedByKubernetes(before, r v1alpha1.Resource, err error) {
	if temporary(err) {
		if was := apimeta.FindStatusCondition(before.Common().Conditions, v1alpha1.ConditionReady); was != nil {
			apimeta.SetStatusCondition(&r.Common().Conditions, *was)
		} else {
			Condition(r, v1alpha1.ConditionReady, metav1.ConditionUnknown, reasonUnfinished, err.Error(), r.GetGeneration())
		}
		return
	}
	notReady(r, &Problem{Reason: reasonRefused, Message: err.Error()})
}

// temporary reports whether the API server, not the request, is the reason: the same request can succeed later.
func temporary(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsUnexpectedServerError(err)
}

// keepTransitions restores the transition time of each condition that has the same status as before: reconciliation may set a
// condition to another status on the way.
func keepTransitions(before, r v1alpha1.Resource) {
	for i := range r.Common().Conditions {
		c := &r.Common().Conditions[i]
		if was := apimeta.FindStatusCondition(before.Common().Conditions, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

// report stores the status if it has changed, and records an Event for a new problem.
func (m *Mirror[R, P]) report(ctx context.Context, before, r R) error {
	keepTransitions(before, r)
	was := apimeta.FindStatusCondition(before.Common().Conditions, v1alpha1.ConditionReady)
	condition := apimeta.FindStatusCondition(r.Common().Conditions, v1alpha1.ConditionReady)
	if condition != nil && condition.Status != metav1.ConditionTrue && condition.Reason != reasonAccepted && (was == nil || was.Reason != condition.Reason) {
		m.recordEvent(r, corev1.EventTypeWarning, condition.Reason, condition.Message)
	}
	// Metadata that the phases have stored meanwhile is not part of the difference.
	before.SetResourceVersion(r.GetResourceVersion())
	before.SetFinalizers(r.GetFinalizers())
	before.SetManagedFields(r.GetManagedFields())
	difference := client.MergeFrom(before)
	if data, err := difference.Data(r); err != nil || string(data) == "{}" {
		return err
	}
	return client.IgnoreNotFound(m.client.Status().Patch(ctx, r, difference))
}

// recordEvent records an Event of the resource.
func (m *Mirror[R, P]) recordEvent(r R, kind, reason, message string) {
	Tell(m.recorder, r, kind, reason, message)
}

// maxEventNote bounds an Event's note, in bytes, as the API server does.
const maxEventNote = 1024

// Tell records an Event of a resource.
func Tell(recorder events.EventRecorder, r v1alpha1.Resource, kind, reason, message string) {
	recorder.Eventf(r, nil, kind, reason, "Reconcile", "%s", truncate(message, maxEventNote))
}

// truncate returns at most a number of bytes of a text, without a part of a character at the end.
func truncate(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}
