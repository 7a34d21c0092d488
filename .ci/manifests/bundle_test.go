package manifests

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

const again = "the bundle is not current: make it again, as operator/README.md says"

// inBundle reads a manifest of the bundle.
func inBundle(t *testing.T, name string) object {
	return load(t, filepath.Join(bundle, "manifests", name))
}

func serviceVersion(t *testing.T) object { return inBundle(t, "sluice.clusterserviceversion.yaml") }

// at walks into nested maps and lists.
func at(t *testing.T, in any, way ...any) any {
	t.Helper()
	for _, step := range way {
		switch step := step.(type) {
		case string:
			if o, ok := in.(object); ok {
				in = map[string]any(o)
			}
			in = in.(map[string]any)[step]
		case int:
			in = in.([]any)[step]
		}
		if in == nil {
			t.Fatalf("there is no %v in %v", step, way)
		}
	}
	return in
}

func same(t *testing.T, what string, is, want any) {
	t.Helper()
	if !reflect.DeepEqual(is, want) {
		have, _ := json.Marshal(is)
		wanted, _ := json.Marshal(want)
		t.Errorf("%s: %s\nhave   %s\nwanted %s", what, again, have, wanted)
	}
}

func TestTheBundleIsValid(t *testing.T) {
	read, err := manifests.GetBundleFromDir(bundle)
	if err != nil {
		t.Fatal(err)
	}
	validators := validation.DefaultBundleValidators.WithValidators(validation.OperatorHubV2Validator, validation.GoodPracticesValidator,
		validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator)
	for _, result := range validators.Validate(read.ObjectsToValidate()...) {
		for _, problem := range append(result.Errors, result.Warnings...) {
			// The role names no versions: a rule for events.k8s.io is taken for its beta, which is gone.
			if problem.Level == "Warning" && strings.Contains(problem.Detail, "Migrate the API(s) for events") {
				continue
			}
			t.Errorf("%s: %s", result.Name, problem.Error())
		}
	}
}

func TestTheBundleHasTheDefinitionsOfConfig(t *testing.T) {
	definitions := build(t, "crd")
	for _, definition := range definitions {
		plural, group, _ := strings.Cut(definition.name(), ".")
		packed := inBundle(t, group+"_"+plural+".yaml")
		same(t, definition.name(), at(t, packed, "spec"), at(t, definition, "spec"))
	}
}

func TestTheBundleAllowsAndRunsWhatConfigDoes(t *testing.T) {
	whole, version := build(t, "default"), serviceVersion(t)
	install := at(t, version, "spec", "install", "spec")
	same(t, "the role", at(t, install, "clusterPermissions", 0, "rules"), at(t, only(t, whole, "ClusterRole", ""), "rules"))
	same(t, "the role in its namespace", at(t, install, "permissions", 0, "rules"), at(t, only(t, whole, "Role", ""), "rules"))
	same(t, "the role's account", at(t, install, "permissions", 0, "serviceAccountName"), any(only(t, whole, "ServiceAccount", "").name()))
	same(t, "the deployment", at(t, install, "deployments", 0, "spec"), at(t, only(t, whole, "Deployment", ""), "spec"))
	same(t, "the account", at(t, install, "clusterPermissions", 0, "serviceAccountName"), any(only(t, whole, "ServiceAccount", "").name()))
	checks := only(t, build(t, "scorecard"), "Configuration", "")
	packed := load(t, filepath.Join(bundle, "tests/scorecard/config.yaml"))
	same(t, "the scorecard", at(t, packed, "stages"), at(t, checks, "stages"))
}

// The Lifecycle Manager grants `permissions` in the operator's namespace where that is its group's only one, else everywhere.
func TestTheBundleCanBeInstalledWithRightsInItsNamespaceOnly(t *testing.T) {
	modes := at(t, serviceVersion(t), "spec", "installModes")
	for _, mode := range modes.([]any) {
		kind := at(t, mode, "type").(string)
		same(t, kind, at(t, mode, "supported"), any(kind == "OwnNamespace" || kind == "AllNamespaces"))
	}
	base := load(t, filepath.Join(config, "manifests/bases/sluice.clusterserviceversion.yaml"))
	same(t, "where it can be installed", len(modes.([]any)), len(at(t, base, "spec", "installModes").([]any)))
	for _, mode := range at(t, base, "spec", "installModes").([]any) {
		if !slices.ContainsFunc(modes.([]any), func(m any) bool { return reflect.DeepEqual(m, mode) }) {
			t.Errorf("%v: %s", mode, again)
		}
	}
}

func TestTheBundleShowsTheSamplesOfConfig(t *testing.T) {
	var shown []object
	text := at(t, serviceVersion(t), "metadata", "annotations", "alm-examples").(string)
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	samples := build(t, "samples")
	if len(shown) != len(samples) {
		t.Errorf("%d samples, the bundle shows %d: %s", len(samples), len(shown), again)
	}
	for _, sample := range samples {
		is := slices.IndexFunc(shown, func(o object) bool { return o.kind() == sample.kind() && o.name() == sample.name() })
		if is < 0 {
			t.Errorf("%s %s: %s", sample.kind(), sample.name(), again)
			continue
		}
		// Numbers are compared as JSON has them.
		same(t, sample.kind()+" "+sample.name(), at(t, shown[is], "spec"), at(t, sample, "spec"))
	}
}
