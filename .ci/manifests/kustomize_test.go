package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	config = "../../operator/config"
	bundle = "../../operator/bundle"
)

// object is any manifest.
type object map[string]any

func (o object) kind() string { kind, _ := o["kind"].(string); return kind }

func (o object) name() string {
	head, _ := o["metadata"].(map[string]any)
	name, _ := head["name"].(string)
	return name
}

// build is what `kustomize build` of a folder below operator/config gives.
func build(t *testing.T, folder string) []object {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(config, folder))
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	var all []object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decode(t, text))
	}
	return all
}

func decode(t *testing.T, text []byte) object {
	t.Helper()
	var one object
	if err := yaml.UnmarshalStrict(text, &one); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return one
}

func load(t *testing.T, path string) object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// only is the object of a kind, of a name if one is given.
func only(t *testing.T, all []object, kind, name string) object {
	t.Helper()
	var found []object
	for _, o := range all {
		if o.kind() == kind && (name == "" || o.name() == name) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, name %q, wanted one", len(found), kind, name)
	}
	return found[0]
}

func TestEveryKustomizationBuildsAndEveryManifestIsInOne(t *testing.T) {
	named := map[string]bool{}
	var folders, files []string
	err := filepath.WalkDir(config, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if entry.Name() == "kustomization.yaml" {
			folders = append(folders, filepath.Dir(path))
		} else if strings.HasSuffix(path, ".yaml") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		below, err := filepath.Rel(config, folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(build(t, below)) == 0 {
			t.Errorf("%s gives nothing", below)
		}
		var names struct {
			Resources []string `json:"resources"`
			Patches   []struct {
				Path string `json:"path"`
			} `json:"patches"`
		}
		text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &names); err != nil {
			t.Fatal(err)
		}
		for _, patch := range names.Patches {
			names.Resources = append(names.Resources, patch.Path)
		}
		for _, name := range names.Resources {
			named[filepath.Join(folder, name)] = true
		}
	}
	for _, want := range []string{"crd", "rbac", "manager", "default", "samples", "prometheus", "manifests", "scorecard"} {
		build(t, want)
	}
	for _, file := range files {
		if !named[file] {
			t.Errorf("%s is in no kustomization: kubectl apply -k would leave it out", file)
		}
	}
}
