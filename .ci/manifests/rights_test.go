package manifests

import (
	"slices"
	"strings"
	"testing"
)

// everywhere is what the operator may do in all namespaces, and to what is in none: its own kinds, and what is said of them.
// Secrets are read where the Hosts and StoragePools are that name them. "*" are all verbs that a rule may list by name.
var everywhere = map[string]string{
	"nodes": "get list watch", "secrets": "get list watch", "events.events.k8s.io": "create patch",
}

// here are the kinds of others that the operator writes, in its own namespace only: with one of them elsewhere it could make
// itself the owner of what runs there, and of the cluster where a namespace lets pods have the node.
var here = []string{"pods", "services", "secrets", "events", "leases.coordination.k8s.io", "poddisruptionbudgets.policy"}

// granted are the verbs by resource (kind.group) of a role's rules.
func granted(t *testing.T, rules any) map[string][]string {
	t.Helper()
	texts := func(list any) (found []string) {
		for _, one := range list.([]any) {
			found = append(found, one.(string))
		}
		return found
	}
	all := map[string][]string{}
	for _, rule := range rules.([]any) {
		for _, group := range texts(at(t, rule, "apiGroups")) {
			for _, resource := range texts(at(t, rule, "resources")) {
				name := strings.TrimSuffix(resource+"."+group, ".")
				all[name] = append(all[name], texts(at(t, rule, "verbs"))...)
			}
		}
	}
	return all
}

func TestEverywhereTheOperatorWritesNothingButItsOwnKindsAndEvents(t *testing.T) {
	whole := build(t, "default")
	install := at(t, serviceVersion(t), "spec", "install", "spec")
	for of, rules := range map[string]any{
		"config": at(t, only(t, whole, "ClusterRole", ""), "rules"), "the bundle": at(t, install, "clusterPermissions", 0, "rules"),
	} {
		for resource, verbs := range granted(t, rules) {
			if strings.HasSuffix(resource, ".sluice.dev") && !strings.Contains(resource, "*") {
				continue
			}
			for _, verb := range verbs {
				if !slices.Contains(strings.Fields(everywhere[resource]), verb) {
					t.Errorf("%s: %s of %s is granted in every namespace; give the marker that asks for it `namespace=sluice-system`",
						of, verb, resource)
				}
			}
		}
	}
}

func TestInItsNamespaceTheOperatorHasWhatGatewaysAreMadeOfAndNoMore(t *testing.T) {
	whole := build(t, "default")
	role := only(t, whole, "Role", "")
	own := at(t, only(t, whole, "Namespace", ""), "metadata", "name")
	same(t, "the role's namespace", at(t, role, "metadata", "namespace"), own)
	has := granted(t, at(t, role, "rules"))
	for _, resource := range here {
		if !slices.Contains(has[resource], "create") {
			t.Errorf("no %s can be made: no gateway would run", resource)
		}
	}
	for resource := range has {
		if !slices.Contains(here, resource) {
			t.Errorf("%s is granted, and nothing needs it", resource)
		}
	}
}

func TestBothRolesAreTheDeploymentsAccounts(t *testing.T) {
	whole := build(t, "default")
	account := at(t, only(t, whole, "Deployment", ""), "spec", "template", "spec", "serviceAccountName")
	for _, kind := range []string{"ClusterRole", "Role"} {
		role, binding := only(t, whole, kind, ""), only(t, whole, kind+"Binding", "")
		same(t, kind, at(t, binding, "roleRef", "name"), any(role.name()))
		same(t, kind, at(t, binding, "subjects", 0, "name"), account)
	}
}
