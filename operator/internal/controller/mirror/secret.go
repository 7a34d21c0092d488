package mirror

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/convert"
)

// This rule grants the right in the operator's own namespace; a Role grants it in others. There is no list or watch, so the
// operator can read only Secrets whose name it knows.
// +kubebuilder:rbac:groups="",namespace=sluice-system,resources=secrets,verbs=get

// SecretReader reads the Secrets of one resource from the API server itself: the operator stores no copies of Secrets. It records
// which versions it has read.
type SecretReader struct {
	reader   client.Reader
	versions []string
}

// Read reads a key of the Secret that a field of the resource names. An error names the field, the Secret and the key.
func (s *SecretReader) Read(ctx context.Context, field string, name types.NamespacedName, key string) (string, error) {
	var secret corev1.Secret
	if err := s.reader.Get(ctx, name, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return "", Problemf("SecretMissing", "%s: there is no Secret %s; make it, with the key %q", field, name, key)
		}
		if apierrors.IsForbidden(err) {
			return "", Problemf("SecretForbidden", "%s: the operator may not read Secrets in the namespace %s; add it to "+
				"operator.secretNamespaces of the Helm release, or grant the operator's service account `get` of the Secret %s there",
				field, name.Namespace, name.Name)
		}
		return "", err
	}
	held, ok := secret.Data[key]
	if !ok {
		return "", Problemf("SecretMissing", "%s: the Secret %s has no key %q", field, name, key)
	}
	s.versions = append(s.versions, string(secret.UID)+"/"+secret.ResourceVersion)
	return string(held), nil
}

// Of returns a reader that uses the context of one reconciliation.
func (s *SecretReader) Of(ctx context.Context) convert.SecretReader {
	return func(field string, ref convert.SecretKey) (string, error) {
		return s.Read(ctx, field, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.Key)
	}
}
