package gateway

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/certificate"
)

func withAuthority(t *testing.T, name string) (*gateways, *v1alpha1.Gateway) {
	t.Helper()
	data, err := certificate.Make()
	if err != nil {
		t.Fatal(err)
	}
	authority := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca"}, Data: data}
	g := &gateways{client: fake.NewClientBuilder().WithObjects(authority).Build(),
		Options: Options{Namespace: "ns", Authority: name}}
	return g, &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "gw-0", UID: "u"}}
}

func TestAGatewaysCertificateIsMadeUnderTheNameThatItsPodMountsAndGoesWithIt(t *testing.T) {
	g, r := withAuthority(t, "ca")
	if err := g.certify(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	mounts := ""
	for _, volume := range g.render(r, nil).Spec.Volumes {
		if volume.Secret != nil {
			mounts = volume.Secret.SecretName
		}
	}
	secret := &corev1.Secret{}
	if err := g.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: mounts}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != r.UID {
		t.Errorf("it is owned by %v", secret.OwnerReferences)
	}
}

func TestWithoutAnAuthorityAnotherProgramMakesGatewaysCertificates(t *testing.T) {
	g, r := withAuthority(t, "")
	if err := g.certify(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	err := g.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: secretName(r.Name)}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("there is one: %v", err)
	}
}

func TestAnAuthorityThatIsMissingIsNamed(t *testing.T) {
	g, r := withAuthority(t, "other")
	if err := g.certify(t.Context(), r); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("it says %v", err)
	}
}
