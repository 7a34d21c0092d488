package certificate

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LabelIssued marks a Secret that this package made and renews. A Secret without it belongs to another component.
const LabelIssued = "sluice.dev/issued"

// Secrets maintains certificates in Secrets of one namespace.
type Secrets struct {
	Client    client.Client
	Namespace string
	// Authority is the name of the CA's Secret.
	Authority string
	// Prefix of the names of the Secrets that System maintains.
	Prefix string
}

// DefaultPrefix is the prefix of an installation with default names.
const DefaultPrefix = "sluice"

// Open reads the CA.
func (s *Secrets) Open(ctx context.Context) (*Authority, error) {
	secret := &corev1.Secret{}
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Authority}, secret); err != nil {
		return nil, err
	}
	a, err := Read(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Authority, err)
	}
	return a, nil
}

// Once creates a Secret if there is none. An existing Secret is not changed.
func (s *Secrets) Once(ctx context.Context, name string, kind corev1.SecretType, content func() (map[string][]byte, error)) error {
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	data, err := content()
	if err != nil {
		return err
	}
	at := metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
	err = s.Client.Create(ctx, &corev1.Secret{ObjectMeta: at, Type: kind, Data: data})
	if apierrors.IsAlreadyExists(err) {
		return nil // another replica created it first
	}
	return err
}

// Keep creates a leaf's Secret, and renews it when it is due. A Secret without LabelIssued is not changed.
func (s *Secrets) Keep(ctx context.Context, a *Authority, name string, leaf Leaf, owners ...metav1.OwnerReference) error {
	now, secret := time.Now(), &corev1.Secret{}
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if !missing && (secret.Labels[LabelIssued] == "" || !a.Due(secret.Data, leaf, now)) {
		return nil
	}
	data, err := a.Issue(leaf, now)
	if err != nil {
		return err
	}
	if missing {
		made := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: data, ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Labels: map[string]string{LabelIssued: "true"}, OwnerReferences: owners,
		}}
		if err := s.Client.Create(ctx, made); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil // another replica changed it first
	}
	secret.Data = data
	return s.Client.Update(ctx, secret)
}

// System maintains all certificates except those of gateways: control plane, operator, CSI driver, administrator.
func (s *Secrets) System(ctx context.Context, a *Authority, serverNames []string) error {
	for name, leaf := range map[string]Leaf{
		"controlplane-tls": {CommonName: "sluice-controlplane", Role: "server", Hosts: serverNames},
		"operator-tls":     {CommonName: "sluice-operator", Role: "operator"},
		"csi-tls":          {CommonName: "sluice-csi", Role: "csi"},
		"admin-tls":        {CommonName: "admin", Role: "admin"},
	} {
		if err := s.Keep(ctx, a, s.Prefix+"-"+name, leaf); err != nil {
			return err
		}
	}
	return nil
}

// StoreKey returns the content of the control plane's --key-file: a key of 32 bytes (AES-256) with an identifier.
func StoreKey() (map[string][]byte, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails (crypto/rand)
	line := time.Now().UTC().Format("20060102T150405Z") + ":" + base64.StdEncoding.EncodeToString(key[:]) + "\n"
	return map[string][]byte{"secrets.key": []byte(line)}, nil
}
