package gateway

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/certificate"
	"sluice.dev/sluice/operator/internal/controller/mirror"
)

// +kubebuilder:rbac:groups="",namespace=sluice-system,resources=secrets,verbs=create;update

// certify makes the gateway's certificate and renews it, if the operator has a CA. A Secret that another component made is used
// unchanged. The Gateway owns the Secret: it outlives pods, and is deleted with the gateway.
func (g *gateways) certify(ctx context.Context, r *v1alpha1.Gateway) error {
	if g.Authority == "" || g.Insecure {
		return nil
	}
	secrets := certificate.Secrets{Client: g.client, Namespace: g.Namespace, Authority: g.Authority}
	authority, err := secrets.Open(ctx)
	if err != nil {
		return mirror.Problemf("NoAuthority", "its certificate cannot be signed: %v", err)
	}
	leaf := certificate.Leaf{CommonName: r.Name, Role: "gateway"}
	owner := metav1.NewControllerRef(r, v1alpha1.GroupVersion.WithKind("Gateway"))
	if err := secrets.Keep(ctx, authority, secretName(r.Name), leaf, *owner); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// secretName returns the name of the Secret with a gateway's certificate.
func secretName(gateway string) string { return gateway + "-tls" }
