package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// may asks the API server whether the operator's user, with the roles of config/rbac, may access a resource.
func may(t *testing.T, verb, namespace, group, resource, name string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "sluice-operator", Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name},
	}}
	if err := env.client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// others are resources by which an account can take over a namespace, or the cluster.
var others = []struct{ group, resource string }{
	{"", "pods"}, {"", "pods/exec"}, {"", "pods/ephemeralcontainers"}, {"", "services"}, {"", "secrets"}, {"", "configmaps"},
	{"", "serviceaccounts/token"}, {"", "nodes"}, {"", "namespaces"}, {"apps", "deployments"}, {"apps", "daemonsets"}, {"batch", "jobs"},
	{"policy", "poddisruptionbudgets"}, {"coordination.k8s.io", "leases"}, {"rbac.authorization.k8s.io", "roles"},
	{"rbac.authorization.k8s.io", "clusterrolebindings"}, {"admissionregistration.k8s.io", "validatingwebhookconfigurations"},
}

func TestInOtherNamespacesTheOperatorWritesNothingOfOthers(t *testing.T) {
	for _, kind := range others {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			for _, namespace := range []string{"shop", "kube-system", metav1.NamespaceAll} {
				if may(t, verb, namespace, kind.group, kind.resource, "") {
					t.Errorf("it may %s %s in %q", verb, kind.resource, namespace)
				}
			}
		}
	}
	for _, resource := range []string{"pods", "services", "configmaps"} {
		if may(t, "list", "shop", "", resource, "") {
			t.Errorf("it may list %s of the namespace shop", resource)
		}
	}
}

func TestTheOperatorListsAndWatchesNoSecretsAndReadsThemInGrantedNamespacesOnly(t *testing.T) {
	for _, namespace := range []string{systemNamespace, "shop", "closed", "kube-system", metav1.NamespaceAll} {
		for _, verb := range []string{"list", "watch"} {
			if may(t, verb, namespace, "", "secrets", "") {
				t.Errorf("it may %s Secrets of %q", verb, namespace)
			}
		}
		granted := namespace == systemNamespace || namespace == "shop"
		if allowed := may(t, "get", namespace, "", "secrets", "chap"); allowed != granted {
			t.Errorf("it may get a Secret of %q: %t", namespace, allowed)
		}
	}
}

func TestAHostWhoseSecretTheOperatorMayNotReadSaysWhatToGrant(t *testing.T) {
	r := read(t, &v1alpha1.Host{}, `
metadata: {namespace: closed, name: web}
spec: {initiators: ["iqn.2026-11.org.example:closed"], chap: {secretRef: {name: web-chap}}}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "SecretForbidden", "operator.secretNamespaces")
}

func TestInItsNamespaceTheOperatorHoldsItsOwnLeaseAndNoOther(t *testing.T) {
	for _, verb := range []string{"get", "update", "patch"} {
		if !may(t, verb, systemNamespace, "coordination.k8s.io", "leases", "sluice-operator") {
			t.Errorf("it may not %s its lease", verb)
		}
		if may(t, verb, systemNamespace, "coordination.k8s.io", "leases", "external-attacher-leader-csi-sluice-dev") {
			t.Errorf("it may %s another one's lease", verb)
		}
	}
	for _, resource := range []string{"pods/exec", "serviceaccounts/token", "configmaps"} {
		if may(t, "create", systemNamespace, "", resource, "") {
			t.Errorf("it may create %s", resource)
		}
	}
}

func TestANewLeaderIsRecordedAsAnEventOfTheLease(t *testing.T) {
	eventually(t, func() error {
		var all corev1.EventList
		if err := env.client.List(context.Background(), &all, client.InNamespace(systemNamespace)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.InvolvedObject.Kind == "Lease" && e.Reason == "LeaderElection" {
				return nil
			}
		}
		return fmt.Errorf("of %d events none is the lease's", len(all.Items))
	})
}
