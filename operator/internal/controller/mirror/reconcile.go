package mirror

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	sluice "sluice.dev/sluice/proto/client"
)

// requeueInterval is the regular interval for states that no watch reports; watched changes are handled at once.
const requeueInterval = 20 * time.Second

// Mirror reconciles the resources of one kind.
type Mirror[R v1alpha1.Resource, P Object] struct {
	Managed[R, P]
	findings *Findings
	client   client.Client
	secrets  client.Reader
	recorder events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (m *Mirror[R, P]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r := empty[R]()
	if err := m.client.Get(ctx, request.NamespacedName, r); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := r.DeepCopyObject().(R)

	have, err := m.phases(ctx, r)
	if apierrors.IsConflict(err) { // the cache is out of date; the newer version causes another reconciliation
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if r.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(r, v1alpha1.Finalizer) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	result, err := m.after(ctx, before, r, have, err)
	if failed := m.report(ctx, before, r); failed != nil {
		return reconcile.Result{}, failed
	}
	return result, err
}

// phases are the steps for a resource: its object is observed, and then deleted, created or updated.
func (m *Mirror[R, P]) phases(ctx context.Context, r R) (P, error) {
	if abandoned(r) { // also while the control plane is unreachable
		var none P
		return none, m.abandon(ctx, r)
	}
	have, err := m.observe(ctx, r)
	if err != nil {
		return have, err
	}
	if r.GetDeletionTimestamp() != nil {
		return have, m.remove(ctx, r, have)
	}
	if err := m.hold(ctx, r); err != nil {
		return have, err
	}
	if m.Before != nil {
		if err := m.Before(ctx, r, have); err != nil {
			return have, err
		}
	}
	secrets := &SecretReader{reader: m.secrets}
	want, err := m.Want(ctx, r, secrets)
	if err != nil {
		return have, err
	}
	have, err = m.put(ctx, r, have, want, strings.Join(secrets.versions, " "))
	if err != nil || m.After == nil {
		return have, err
	}
	return have, m.After(ctx, r, have)
}

// observe reads the object; nil: there is none.
func (m *Mirror[R, P]) observe(ctx context.Context, r R) (P, error) {
	have, err := m.Noun.Get(ctx, Name(r))
	if err != nil {
		var none P
		if sluice.IsNotFound(err) {
			return none, nil
		}
		return none, err
	}
	return have, nil
}

// hold sets the finalizer before anything is created that would be left behind without it.
func (m *Mirror[R, P]) hold(ctx context.Context, r R) error {
	before := r.DeepCopyObject().(R)
	if !controllerutil.AddFinalizer(r, v1alpha1.Finalizer) {
		return nil
	}
	return m.client.Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// after converts the result to conditions, and to the time of the next reconciliation. before is the resource as it was read.
func (m *Mirror[R, P]) after(ctx context.Context, before, r R, have P, err error) (reconcile.Result, error) {
	if !isNil(have) {
		m.show(r, have)
		if worst, known := m.findings.of(ctx, m.Noun.Kind, have.GetMeta().GetName()); known {
			showFinding(r, worst)
		}
	}
	if err == nil {
		return reconcile.Result{}, nil
	}
	var later *RequeueAfter
	if errors.As(err, &later) {
		return requeueAfter(later.Wait), nil
	}
	var problem *Problem
	if !errors.As(err, &problem) {
		if apierrors.ReasonForError(err) != "" {
			refusedByKubernetes(before, r, err)
			return reconcile.Result{}, err // repeated with backoff, and logged
		}
		refusal := Explain(err)
		problem = &Problem{Reason: refusal.Reason, Message: refusal.Message}
		if !refusal.Lasting() {
			unreachable(r, problem)
			return reconcile.Result{}, errors.New(refusal.Message) // repeated with backoff, and logged
		}
		if refusal.Reason == ReasonForbidden { // this concerns the operator's administrator, not the author of the resource
			log.FromContext(ctx).Error(err, refusal.Message)
		}
	}
	notReady(r, problem)
	return requeueAfter(problem.Wait), nil
}

func requeueAfter(wait time.Duration) reconcile.Result {
	if wait == 0 {
		wait = requeueInterval
	}
	return reconcile.Result{RequeueAfter: wait/2 + rand.N(wait)}
}

func empty[R v1alpha1.Resource]() R { return reflect.New(reflect.TypeFor[R]().Elem()).Interface().(R) }

func isNil(object any) bool {
	value := reflect.ValueOf(object)
	return !value.IsValid() || value.IsNil()
}
