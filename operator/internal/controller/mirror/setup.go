package mirror

import (
	"context"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
)

// Bounds of a controller.
const (
	workers    = 4
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Names of the indexes over a kind's resources.
const (
	indexReferences = "references"
	indexSecrets    = "secrets"
)

// resources returns an empty resource of each kind, for watches.
func resources() map[string]v1alpha1.Resource {
	return map[string]v1alpha1.Resource{
		"Volume": &v1alpha1.Volume{}, "Snapshot": &v1alpha1.Snapshot{}, "Target": &v1alpha1.Target{}, "Host": &v1alpha1.Host{},
		"StoragePool": &v1alpha1.StoragePool{}, "Fabric": &v1alpha1.Fabric{}, "GatewayPool": &v1alpha1.GatewayPool{},
		"Gateway": &v1alpha1.Gateway{},
	}
}

// Setup adds the controller of a kind. It reconciles a resource when any of these changes: the resource; its object in the
// control plane, or what the control plane finds wrong with it; a resource to which it refers or that refers to it, when that one appears, disappears or becomes ready; its
// Secrets; and the sources that `more` adds.
func Setup[R v1alpha1.Resource, P Object](mgr manager.Manager, findings *Findings, kind Managed[R, P],
	more func(*builder.Builder, client.Client),
) error {
	name := kind.Noun.Kind
	m := &Mirror[R, P]{Managed: kind, findings: findings, client: mgr.GetClient(), secrets: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("sluice-operator")}
	index := mgr.GetFieldIndexer()
	err := index.IndexField(context.Background(), asObject(empty[R]()), indexReferences, func(o client.Object) []string {
		var keys []string
		for _, reference := range References(o) {
			keys = append(keys, reference.key())
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("%s: index of references: %w", name, err)
	}
	b := builder.ControllerManagedBy(mgr).Named(strings.ToLower(name)).
		For(asObject(empty[R]()), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, resynced))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstRetry, lastRetry),
		}).
		WatchesRawSource(m.changes())
	for other, empty := range resources() {
		if related(name, other) {
			b = b.Watches(asObject(empty), handler.EnqueueRequestsFromMapFunc(m.relatives(other)),
				builder.WithPredicates(readinessChanged))
		}
	}
	if kind.SecretVersions != nil {
		err := index.IndexField(context.Background(), asObject(empty[R]()), indexSecrets, func(o client.Object) []string {
			var keys []string
			for _, secret := range Secrets(o) {
				keys = append(keys, secret.String())
			}
			return keys
		})
		if err != nil {
			return fmt.Errorf("%s: index of Secrets: %w", name, err)
		}
		b = b.WatchesRawSource(m.secretChanges(kind.SecretsEvery))
	}
	if more != nil {
		more(b, mgr.GetClient())
	}
	return b.Complete(m)
}

func asObject(r v1alpha1.Resource) client.Object { return r }

// changes enqueues resources whose objects change, or have other findings than before.
func (m *Mirror[R, P]) changes() source.Source {
	namespaced := convert.Namespaced(m.Noun.Kind)
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		enqueue := func(name string) {
			if key, ok := resourceOf(name, namespaced); ok {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
		m.findings.follow(m.Noun.Kind, enqueue)
		go m.Noun.Follow(ctx, enqueue)
		return nil
	})
}

// relatives returns the resources of this kind that refer to a resource of another kind, or to which it refers.
func (m *Mirror[R, P]) relatives(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		key := Reference{kind, client.ObjectKeyFromObject(o)}.key()
		found := m.indexed(ctx, indexReferences, key)
		for _, reference := range References(o) {
			if reference.Kind == m.Noun.Kind {
				found = append(found, reconcile.Request{NamespacedName: reference.NamespacedName})
			}
		}
		return found
	}
}

func (m *Mirror[R, P]) indexed(ctx context.Context, index, key string) []reconcile.Request {
	made, err := m.client.Scheme().New(v1alpha1.GroupVersion.WithKind(m.Noun.Kind + "List"))
	if err != nil {
		return nil // every kind is in the scheme
	}
	list := made.(client.ObjectList)
	if err := m.client.List(ctx, list, client.MatchingFields{index: key}); err != nil {
		return nil // the cache has stopped
	}
	var found []reconcile.Request
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: object.GetNamespace(), Name: object.GetName(),
		}})
		return nil
	})
	return found
}

// resynced passes the regular reconciliation: the cache reports every resource again, unchanged, at intervals.
var resynced = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}}

// readinessChanged passes changes that may allow another resource to proceed: a resource appears, disappears, or changes its
// readiness.
var readinessChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		from, _ := e.ObjectOld.(v1alpha1.Resource)
		to, _ := e.ObjectNew.(v1alpha1.Resource)
		return from == nil || to == nil || from.GetGeneration() != to.GetGeneration() ||
			from.GetDeletionTimestamp().IsZero() != to.GetDeletionTimestamp().IsZero() ||
			(from.Common().ControlPlane == nil) != (to.Common().ControlPlane == nil) ||
			ready(from) != ready(to)
	},
}

func ready(r v1alpha1.Resource) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(r.Common().Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}
