package mirror

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// secretGap is the minimum time between two reads: a thousand Secrets take 20 s, at a twentieth of the API server's limit for a
// client.
const secretGap = 20 * time.Millisecond

// secretChanges reads, at intervals, the metadata of the Secrets that resources of this kind name, and enqueues the resources
// whose Secrets were changed, created or deleted, or have become readable. A watch would require the right to list all Secrets of
// a namespace.
func (m *Mirror[R, P]) secretChanges(every time.Duration) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			var known map[types.NamespacedName]string
			for ctx.Err() == nil {
				known = m.changedSecrets(ctx, known, queue.Add)
				pause(ctx, every)
			}
		}()
		return nil
	})
}

func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// changedSecrets reads each Secret that is named now, and compares it with its known version. A Secret that was not known before
// also enqueues its resources, because it may have changed since they were reconciled.
func (m *Mirror[R, P]) changedSecrets(ctx context.Context, known map[types.NamespacedName]string, enqueue func(reconcile.Request),
) map[types.NamespacedName]string {
	named, err := m.namedSecrets(ctx)
	if err != nil {
		return known // the cache has stopped
	}
	now := make(map[types.NamespacedName]string, len(named))
	for name := range named {
		pause(ctx, secretGap)
		if ctx.Err() != nil {
			return known
		}
		was, before := known[name]
		version, err := m.secretVersion(ctx, name)
		if err != nil {
			log.FromContext(ctx).Error(err, "a Secret could not be read", "secret", name)
			version = was
		}
		now[name] = version
		if !before || was != version {
			for _, request := range m.indexed(ctx, indexSecrets, name.String()) {
				enqueue(request)
			}
		}
	}
	return now
}

// namedSecrets returns the Secrets that resources of this kind name, each once.
func (m *Mirror[R, P]) namedSecrets(ctx context.Context) (map[types.NamespacedName]bool, error) {
	made, err := m.client.Scheme().New(v1alpha1.GroupVersion.WithKind(m.Noun.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list := made.(client.ObjectList)
	if err := m.client.List(ctx, list); err != nil {
		return nil, err
	}
	named := map[types.NamespacedName]bool{}
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		for _, name := range Secrets(item.(client.Object)) {
			named[name] = true
		}
		return nil
	})
	return named, err
}

// secretVersion identifies the states of a Secret for which a resource must be reconciled.
func (m *Mirror[R, P]) secretVersion(ctx context.Context, name types.NamespacedName) (string, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := m.secrets.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		return "missing", nil
	case apierrors.IsForbidden(err):
		return "forbidden", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s/%s", secret.UID, secret.ResourceVersion), nil
}
