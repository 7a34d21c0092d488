package mirror

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// Reference names a resource that another one needs.
type Reference struct {
	Kind string
	types.NamespacedName
}

func (r Reference) key() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// relations has, for each kind, the kinds to which it refers.
var relations = map[string][]string{
	"Volume":      {"StoragePool", "Snapshot", "Volume"},
	"Snapshot":    {"Volume"},
	"Target":      {"GatewayPool", "Volume", "Host"},
	"Host":        {"Fabric"},
	"GatewayPool": {"Fabric"},
	"Gateway":     {"GatewayPool", "Fabric"},
}

func related(kind, other string) bool {
	return slices.Contains(relations[kind], other) || slices.Contains(relations[other], kind)
}

// References returns the resources that a resource needs.
func References(object client.Object) []Reference {
	var needed []Reference
	in := func(namespace, kind, name string) {
		if name != "" {
			needed = append(needed, Reference{kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	here := object.GetNamespace()
	switch r := object.(type) {
	case *v1alpha1.Volume:
		in("", "StoragePool", r.Spec.Pool)
		if r.Spec.Source != nil {
			in(here, "Snapshot", r.Spec.Source.Snapshot)
			in(here, "Volume", r.Spec.Source.Volume)
		}
	case *v1alpha1.Snapshot:
		in(here, "Volume", r.Spec.Volume)
	case *v1alpha1.Target:
		in("", "GatewayPool", r.Spec.GatewayPool)
		for _, lun := range r.Spec.Luns {
			in(here, "Volume", lun.Volume)
		}
		for _, host := range r.Spec.Hosts {
			in(here, "Host", host)
		}
	case *v1alpha1.Host:
		for _, place := range r.Spec.Switches {
			in("", "Fabric", place.Fabric)
		}
	case *v1alpha1.GatewayPool:
		for _, portal := range r.Spec.Portals {
			in("", "Fabric", portal.Fabric)
		}
	case *v1alpha1.Gateway:
		in("", "GatewayPool", r.Spec.GatewayPool)
		for _, portal := range r.Spec.Portals {
			in("", "Fabric", portal.Fabric)
		}
	}
	return needed
}

// Secrets returns the Secrets that a resource needs.
func Secrets(object client.Object) []types.NamespacedName {
	var needed []types.NamespacedName
	switch r := object.(type) {
	case *v1alpha1.Host:
		for _, chap := range []*v1alpha1.ChapCredentials{r.Spec.Chap, r.Spec.MutualChap} {
			if chap != nil {
				needed = append(needed, types.NamespacedName{Namespace: r.Namespace, Name: chap.SecretRef.Name})
			}
		}
	case *v1alpha1.StoragePool:
		if r.Spec.Rbd != nil {
			ref := r.Spec.Rbd.KeySecretRef
			needed = append(needed, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	return needed
}
