package test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheAPIServerTakesEverySampleAndThereIsOneOfEachKind(t *testing.T) {
	files, err := filepath.Glob("../config/samples/sluice_v1alpha1_*.yaml")
	must(err)
	missing := map[string]bool{"Volume": true, "Snapshot": true, "Target": true, "Host": true, "StoragePool": true, "Fabric": true,
		"GatewayPool": true, "Gateway": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
		for {
			sample := &unstructured.Unstructured{}
			if err := documents.Decode(&sample.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			strict := client.WithFieldValidation(env.client, "Strict")
			if err := strict.Create(t.Context(), sample, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
			delete(missing, sample.GetKind())
		}
	}
	for kind := range missing {
		t.Errorf("there is no sample of a %s", kind)
	}
}
