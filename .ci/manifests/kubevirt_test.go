package manifests

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/yaml"
)

const kubevirtPage = "../../docs/KUBEVIRT.md"

var inPage = regexp.MustCompile(`(?s)<<'EOF'\n(.*?\n) *EOF\n`)

// ofPage returns the objects of the page about KubeVirt, by kind.
func ofPage(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(kubevirtPage)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, match := range inPage.FindAllStringSubmatch(string(text), -1) {
		document := strings.ReplaceAll("\n"+match[1], "\n    ", "\n")
		var named struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &named); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		found[named.Kind] = document
	}
	return found
}

// strictly reads an object, and refuses fields that its type does not have.
func strictly[T any](t *testing.T, document string) T {
	t.Helper()
	var into T
	if err := yaml.UnmarshalStrict([]byte(document), &into); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return into
}

func TestTheObjectsOfTheKubeVirtPageHaveOnlyFieldsOfTheirTypes(t *testing.T) {
	objects := ofPage(t)
	machine := strictly[kubevirt.VirtualMachine](t, objects["VirtualMachine"])
	migration := strictly[kubevirt.VirtualMachineInstanceMigration](t, objects["VirtualMachineInstanceMigration"])
	strictly[cdi.StorageProfile](t, objects["StorageProfile"])
	if len(objects) != 3 {
		t.Errorf("the page has %d kinds of objects, and this test reads 3", len(objects))
	}
	if *machine.Spec.Template.Spec.EvictionStrategy != kubevirt.EvictionStrategyLiveMigrate || *machine.Spec.RunStrategy != kubevirt.RunStrategyAlways {
		t.Errorf("strategies %v", machine.Spec)
	}
	if migration.Spec.VMIName != machine.Name || migration.Namespace != machine.Namespace {
		t.Errorf("%s/%s migrates, and the machine is %s/%s", migration.Namespace, migration.Spec.VMIName, machine.Namespace, machine.Name)
	}
	disk := machine.Spec.DataVolumeTemplates[0]
	if used := machine.Spec.Template.Spec.Volumes[0].DataVolume.Name; used != disk.Name {
		t.Errorf("the machine uses the disk %s, and has %s", used, disk.Name)
	}
	if class := *disk.Spec.Storage.StorageClassName; class != strictly[cdi.StorageProfile](t, objects["StorageProfile"]).Name {
		t.Errorf("the disk is of class %s, which has no profile on the page", class)
	}
}

func TestTheStorageProfileOfTheKubeVirtPagePrefersWhatMigratesAndAsksForNothingThatTheDriverRefuses(t *testing.T) {
	profile := strictly[cdi.StorageProfile](t, ofPage(t)["StorageProfile"])
	for i, set := range profile.Spec.ClaimPropertySets {
		shared := slices.Contains(set.AccessModes, corev1.ReadWriteMany)
		if block := *set.VolumeMode == corev1.PersistentVolumeBlock; shared != (i == 0) || shared && !block {
			t.Errorf("set %d is %v, %s", i, set.AccessModes, *set.VolumeMode)
		}
		for _, mode := range set.AccessModes {
			if mode != corev1.ReadWriteMany && mode != corev1.ReadWriteOnce {
				t.Errorf("set %d has the access mode %s", i, mode)
			}
		}
	}
	if *profile.Spec.CloneStrategy != cdi.CloneStrategyCsiClone || *profile.Spec.DataImportCronSourceFormat != cdi.DataImportCronSourceFormatSnapshot {
		t.Errorf("strategies: %+v", profile.Spec)
	}
}
