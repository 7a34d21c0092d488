package mirror

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	groups "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// grants is an API server on which Secrets may be read in some namespaces, and listed in none.
type grants struct {
	client.WithWatch
	namespaces []string
}

func newGrants(t *testing.T, namespaces ...string) *grants {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g := &grants{namespaces: namespaces}
	g.WithWatch = fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.Host{}, indexSecrets, func(o client.Object) (keys []string) {
			for _, secret := range Secrets(o) {
				keys = append(keys, secret.String())
			}
			return keys
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if isSecret(into) && !slices.Contains(g.namespaces, key.Namespace) {
					return apierrors.NewForbidden(groups.GroupResource{Resource: "secrets"}, key.Name, nil)
				}
				return c.Get(ctx, key, into, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				if _, hosts := into.(*v1alpha1.HostList); !hosts {
					return apierrors.NewForbidden(groups.GroupResource{Resource: "secrets"}, "", nil)
				}
				return c.List(ctx, into, options...)
			},
		}).Build()
	return g
}

func isSecret(o client.Object) bool {
	if _, ok := o.(*corev1.Secret); ok {
		return true
	}
	return o.GetObjectKind().GroupVersionKind().Kind == "Secret"
}

func (g *grants) put(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := g.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func host(namespace, name, secret string) *v1alpha1.Host {
	return &v1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.HostSpec{
		Chap: &v1alpha1.ChapCredentials{SecretRef: v1alpha1.SecretKeyReference{Name: secret, Key: "password"}}}}
}

func TestHostsAreReconciledWhenTheirSecretsChangeComeOrBecomeReadable(t *testing.T) {
	g := newGrants(t, "shop")
	m := &Mirror[*v1alpha1.Host, *pb.Host]{client: g, secrets: g,
		Managed: Managed[*v1alpha1.Host, *pb.Host]{Noun: Noun[*pb.Host]{Kind: "Host"}}}
	g.put(t, host("shop", "web", "chap"), host("shop", "other", "chap"), host("closed", "away", "chap"), host("shop", "late", "later"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chap"}, StringData: map[string]string{"password": "a"}}
	g.put(t, secret, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "closed", Name: "chap"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unnamed"}})
	var known map[types.NamespacedName]string
	for _, step := range []struct {
		what     string
		change   func()
		enqueued string
	}{
		{"at first all", func() {}, "closed/away shop/late shop/other shop/web"},
		{"nothing changed", func() {}, ""},
		{"a Secret changed", func() {
			secret.Data = map[string][]byte{"password": []byte("b")}
			if err := g.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}, "shop/other shop/web"},
		{"a Secret came", func() { g.put(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later"}}) }, "shop/late"},
		{"a namespace was granted", func() { g.namespaces = append(g.namespaces, "closed") }, "closed/away"},
		{"a Secret went", func() {
			if err := g.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}, "shop/other shop/web"},
	} {
		step.change()
		var enqueued []string
		known = m.changedSecrets(t.Context(), known, func(r reconcile.Request) { enqueued = append(enqueued, r.String()) })
		slices.Sort(enqueued)
		if got := strings.Join(enqueued, " "); got != step.enqueued {
			t.Errorf("%s: %q is reconciled, not %q", step.what, got, step.enqueued)
		}
	}
	if len(known) != 3 {
		t.Errorf("known are %v: a Secret that nothing names is not read", known)
	}
}

func TestASecretThatMayNotBeReadNamesTheValueToSet(t *testing.T) {
	g := newGrants(t)
	reader := &SecretReader{reader: g}
	_, err := reader.Read(t.Context(), "spec.chap.secretRef", types.NamespacedName{Namespace: "closed", Name: "chap"}, "password")
	if err == nil {
		t.Fatal("it was read")
	}
	for _, word := range []string{"spec.chap.secretRef", "namespace closed", "operator.secretNamespaces", "Secret chap"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not name %q", err, word)
		}
	}
}
