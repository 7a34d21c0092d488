package defaults

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// property is the part of an OpenAPI schema that has defaults.
type property struct {
	Default    any                 `json:"default"`
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Schema struct{ OpenAPIV3Schema property }
		}
	}
}

// below lists the defaults of a schema, each as PATH=VALUE.
func (p property) below(path string) []string {
	var all []string
	if p.Default != nil {
		all = append(all, fmt.Sprintf("%s=%v", strings.TrimPrefix(path, "."), p.Default))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		all = append(all, p.Properties[name].below(path+"."+name)...)
	}
	if p.Items != nil {
		all = append(all, p.Items.below(path)...)
	}
	return all
}

// schemaDefaults lists the defaults in the definitions of custom resources, each as KIND PATH=VALUE.
func schemaDefaults(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var read definition
		if err := yaml.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range read.Spec.Versions {
			for _, found := range version.Schema.OpenAPIV3Schema.below("") {
				if !strings.HasSuffix(found, "imagePullSecrets.name=") { // of a type of Kubernetes
					all = append(all, read.Spec.Names.Kind+" "+found)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// The test of the operator tier creates an object of each kind at a real API server, and compares each of these defaults.
func TestEachMarkerIsInTheDefinitionsAndProvenAtTheAPIServer(t *testing.T) {
	documented, err := Collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := schemaDefaults(t, "../../operator/config/crd/bases/*.yaml")
	bundle := schemaDefaults(t, "../../operator/bundle/manifests/sluice.dev_*.yaml")
	if !slices.Equal(found, bundle) {
		t.Errorf("the definitions of the bundle have %q, not %q", bundle, found)
	}
	proof, err := os.ReadFile("../../operator/test/admission_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range found {
		if !strings.Contains(string(proof), "\n"+marker+"\n") {
			t.Errorf("TestOmittedFieldsReceiveTheirDefaults of operator/test does not prove %s", marker)
		}
	}
	zeros := zeroClauses(documented)
	for _, d := range documented {
		value, marker := strings.CutPrefix(d.Text, defaultMarker)
		if !marker {
			continue
		}
		element := d.Where[strings.LastIndex(d.Where, " ")+1:]
		_, field, _ := strings.Cut(element, ".")
		named := regexp.MustCompile(`(?i)\.` + field + `=` + regexp.QuoteMeta(strings.Trim(value, `"`)) + `$`)
		if !slices.ContainsFunc(found, named.MatchString) {
			t.Errorf("%s: no definition has it; run make generate", d)
		}
		if zero, has := zeros[strings.ToLower(element)]; has && zero != value {
			t.Errorf("%s: the message of the control plane documents %s", d, zero)
		}
	}
}

// zeroClauses returns the numbers that messages document for 0, by the name of the field in a resource.
func zeroClauses(documented []Documented) map[string]string {
	clause := regexp.MustCompile(`^0(?::| means) (\d+)$`)
	all := map[string]string{}
	for _, d := range documented {
		file, element, _ := strings.Cut(d.Where, " ")
		if match := clause.FindStringSubmatch(d.Text); match != nil && strings.HasSuffix(file, ".proto") {
			all[strings.ToLower(strings.ReplaceAll(element, "_", ""))] = match[1]
		}
	}
	return all
}
