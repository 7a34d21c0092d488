package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// limits is the part of a CRD's schema that restricts a value.
type limits struct {
	Type       string            `json:"type"`
	Properties map[string]limits `json:"properties"`
	Items      *limits           `json:"items"`
	Required   []string          `json:"required"`
	Enum       []any             `json:"enum"`
	Pattern    string            `json:"pattern"`
	Minimum    *int64            `json:"minimum"`
	Maximum    *int64            `json:"maximum"`
	MinLength  int               `json:"minLength"`
	MaxLength  int               `json:"maxLength"`
	MinItems   int               `json:"minItems"`
	MaxItems   int               `json:"maxItems"`
}

// absent represents an omitted value.
type absent struct{}

// wrong returns values that the limits forbid.
func (l limits) wrong() []any {
	var values []any
	if len(l.Enum) > 0 {
		if l.Type == "integer" {
			values = append(values, int64(-7))
		} else {
			values = append(values, "NoSuchThing")
		}
	}
	if l.Minimum != nil {
		values = append(values, *l.Minimum-1)
	}
	if l.Maximum != nil {
		values = append(values, *l.Maximum+1)
	}
	if l.MinLength > 0 {
		values = append(values, "")
	}
	if l.MaxLength > 0 {
		values = append(values, strings.Repeat("a", l.MaxLength+1))
	}
	if l.Pattern != "" {
		values = append(values, " not this! ")
	}
	if l.MinItems > 0 {
		values = append(values, []any{})
	}
	if l.MaxItems > 0 {
		var many []any
		for i := range l.MaxItems + 1 {
			many = append(many, l.Items.some(i))
		}
		values = append(values, many)
	}
	return values
}

// some returns an element of a list, a different one for each number.
func (l limits) some(i int) any {
	if l.Type == "object" {
		made := map[string]any{}
		for name, property := range l.Properties {
			if slices.Contains(l.Required, name) {
				made[name] = property.some(i)
			}
		}
		return made
	}
	if l.Type == "integer" {
		return int64(i)
	}
	return fmt.Sprintf("e%d", i)
}

// foreign are Kubernetes' own types, with their own rules.
var foreign = []string{"tolerations", "resources", "seccompProfile", "imagePullSecrets"}

// each visits the fields below a field, with their path; a list's element is its first.
func (l limits) each(way []string, needed bool, visit func(limits, []string, bool)) {
	visit(l, way, needed)
	for _, name := range slices.Sorted(maps.Keys(l.Properties)) {
		if !slices.Contains(foreign, name) {
			l.Properties[name].each(append(slices.Clone(way), name), slices.Contains(l.Required, name), visit)
		}
	}
	if l.Items != nil {
		l.Items.each(append(slices.Clone(way), "[0]"), false, visit)
	}
}

// with returns a tree with a value at the end of a path, which is created if needed.
func with(in any, way []string, value any) any {
	if len(way) == 0 {
		return value
	}
	if way[0] == "[0]" {
		list, _ := in.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = with(list[0], way[1:], value)
		return list
	}
	tree, _ := in.(map[string]any)
	if tree == nil {
		tree = map[string]any{}
	}
	if tree[way[0]] = with(tree[way[0]], way[1:], value); tree[way[0]] == (absent{}) {
		delete(tree, way[0])
	}
	return tree
}

// whole are valid specs, one of each kind.
var whole = map[string]string{
	"Volume": `{pool: p, size: 1Gi}`, "Snapshot": `{volume: v}`, "Target": `{gatewayPool: g}`, "Fabric": `{}`,
	"Host":        `{initiators: ["iqn.2026-11.example:w"], chap: {secretRef: {name: s}}}`,
	"StoragePool": `{rbd: {monitors: ["ceph:6789"], user: u, pool: p, keySecretRef: {namespace: ns, name: s}}}`,
	"GatewayPool": fmt.Sprintf(poolSpec, ""), "Gateway": `{gatewayPool: g, portals: [{fabric: red}], template: {image: i}}`,
}

func TestAValueOutsideOfAnyFieldsLimitsIsRefusedWithTheFieldsName(t *testing.T) {
	tried := 0
	for kind, spec := range whole {
		text, err := os.ReadFile(filepath.Join("../config/crd/bases", "sluice.dev_"+strings.ToLower(kind)+"s.yaml"))
		must(err)
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema limits `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		must(yaml.Unmarshal(text, &definition))
		if err := env.client.Create(t.Context(), document(t, kind, "limits", spec), client.DryRunAll); err != nil {
			t.Errorf("%s: what the values are put into is not good itself: %v", kind, err)
		}
		schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		schema.each([]string{"spec"}, false, func(l limits, way []string, needed bool) {
			values := l.wrong()
			if needed {
				values = append(values, absent{})
			}
			field := strings.ReplaceAll(strings.Join(way, "."), ".[", "[")
			for _, value := range values {
				tried++
				object := document(t, kind, "limits", spec)
				object.Object = with(object.Object, way, value).(map[string]any)
				err := env.client.Create(t.Context(), object, client.DryRunAll)
				if err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%s: %s = %.60v: wanted an error that names the field, have %.200v", kind, field, value, err)
				}
			}
		})
	}
	if tried < 150 {
		t.Errorf("only %d values were tried", tried)
	}
}
