package mirror

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadSecret reads a key of a Secret, from the API server itself: the operator keeps no copies of Secrets. With the value
// comes which version of it that is.
func ReadSecret(ctx context.Context, reader client.Reader, field string, name types.NamespacedName, key string,
) (value, version string, err error) {
	var secret corev1.Secret
	if err := reader.Get(ctx, name, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return "", "", Problemf("SecretMissing", "%s: there is no Secret %s; make it, with the key %q", field, name, key)
		}
		return "", "", err
	}
	held, ok := secret.Data[key]
	if !ok {
		return "", "", Problemf("SecretMissing", "%s: the Secret %s has no key %q", field, name, key)
	}
	return string(held), string(secret.UID) + "/" + secret.ResourceVersion, nil
}
