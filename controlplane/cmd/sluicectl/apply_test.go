package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	goodFabric = "apiVersion: sluice.dev/v1\nkind: Fabric\nmeta: {name: good}\nspec: {}\n"
	badVolume  = "apiVersion: sluice.dev/v1\nkind: Volume\nmeta: {name: bad}\nspec: {pool: none, sizeBytes: 1073741824}\n"
)

// file writes a file for a command to read.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// reported returns the error output for a user.
func reported(err error) string {
	var text strings.Builder
	report(&text, err)
	return text.String()
}

func TestAFailureSaysWhichObjectOfAFileItIsAbout(t *testing.T) {
	l := start(t)
	out, err := l.run("apply", "-f", file(t, goodFabric+"---\n"+badVolume))
	if exitCode(err) != exitNotNow || !strings.Contains(out, "fabric good created") {
		t.Errorf("%v\n%s", err, out)
	}
	if output := reported(err); !strings.HasPrefix(output, "error: volume bad: spec.pool: there is no StoragePool") {
		t.Errorf("the output is %s", output)
	}
	_, err = l.run("apply", "-f", file(t, strings.NewReplacer("{name: good}", "{name: good, resourceVersion: 1}", "spec: {}", "spec: {switches: [s]}").Replace(goodFabric)))
	if output := reported(err); exitCode(err) != exitConflict || !strings.HasPrefix(output, "error: fabric good: Fabric \"good\" has changed") {
		t.Errorf("the output is %s", output)
	}
}

func TestAKeyThatIsGivenTwiceIsRefused(t *testing.T) {
	for _, text := range []string{
		strings.Replace(badVolume, "pool: none", "sizeBytes: 5, pool: none", 1),
		`{"apiVersion":"sluice.dev/v1","kind":"Fabric","meta":{"name":"a"},"spec":{},"spec":{"switches":["s"]}}`,
	} {
		_, err := readObjects("-", strings.NewReader(text))
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "already set") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEveryFileThatIsNamedIsApplied(t *testing.T) {
	l := start(t)
	other := strings.Replace(goodFabric, "good", "other", 1)
	out := l.must("apply", "-f", file(t, goodFabric), "-f", file(t, other))
	if out != "fabric good created\nfabric other created\n" {
		t.Errorf("%s", out)
	}
}

func TestAFileThatDescribesNothingIsRefused(t *testing.T) {
	for _, text := range []string{"", "\n---\n---\n", "# to be written\n"} {
		if _, err := readObjects("-", strings.NewReader(text)); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The output of `host list -o yaml | apply -f -` without hosts.
	if all, err := readObjects("-", strings.NewReader("apiVersion: sluice.dev/v1\nkind: List\nitems: []\n")); err != nil || len(all) != 0 {
		t.Errorf("a List of nothing: %v, %v", all, err)
	}
}

func TestApplyPrintsTheStoredObject(t *testing.T) {
	l := start(t)
	out, err := l.run("apply", "-o", "json", "-f", file(t, goodFabric+"---\n"+badVolume))
	var list struct {
		Kind  string
		Items []struct{ Meta struct{ Name, UID string } }
	}
	if exitCode(err) != exitNotNow || json.Unmarshal([]byte(out), &list) != nil || list.Kind != "List" ||
		len(list.Items) != 1 || list.Items[0].Meta.Name != "good" || list.Items[0].Meta.UID == "" {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := l.run("apply", "-o", "json", "-f", file(t, badVolume)); exitCode(err) != exitNotNow || out != "" {
		t.Errorf("nothing was applied: %v\n%s", err, out)
	}
	if out := l.must("apply", "-o", "yaml", "--dry-run", "-f", file(t, goodFabric)); !strings.Contains(out, "kind: Fabric") {
		t.Errorf("one alone: %s", out)
	}
}

func TestAFormatThatThereIsNotIsRefusedBeforeAnythingIsDone(t *testing.T) {
	l := start(t)
	for _, arguments := range [][]string{{"fabric", "create", "red", "-o", "xml"}, {"apply", "-o", "xml", "-f", file(t, goodFabric)},
		{"fabric", "list", "-o", "xml"}} {
		if _, err := l.run(arguments...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "table, wide, json, yaml, name and jsonpath=TEMPLATE") {
			t.Errorf("%v: %v", arguments, err)
		}
	}
	if out := l.must("fabric", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("something was done: %s", out)
	}
}

func TestACHAPNameWithoutItsSecretIsRefused(t *testing.T) {
	l := start(t)
	secret := file(t, "open-sesame-123\n")
	initiator := []string{"host", "create", "web", "--initiator", "iqn.2026-11.org.example:web"}
	for _, more := range [][]string{{"--chap-user", "web", "--allow-unauthenticated"},
		{"--chap-secret-file", secret, "--mutual-chap-user", "db"}} {
		if _, err := l.run(append(initiator, more...)...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "-secret-file") {
			t.Errorf("%v: %v", more, err)
		}
	}
}

func TestFlagsOfAnotherKindOfPoolAreRefused(t *testing.T) {
	for _, line := range []string{"--node n --directory /srv --ceph-pool p", "--monitor m:3300 --ceph-key-file k --device /dev/sdx",
		"--monitor m:3300 --ceph-pool p"} {
		root := newRoot("sluicectl")
		root.SetArgs(append([]string{"pool", "create", "x", "--insecure", "--server", "127.0.0.1:1"}, strings.Fields(line)...))
		if err := execute(t.Context(), root); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestLimitsOfAVolumeAreGivenWithTheirBursts(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--iops", "500", "--iops-burst", "1000",
		"--bytes-per-second", "100Mi", "--bytes-burst", "1Gi")
	got, err := l.Volumes.Get(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if q := got.Spec.QoS; q.IOPS != 500 || q.IOPSBurst != 1000 || q.BytesPerSecond != 100<<20 || q.BytesBurst != 1<<30 {
		t.Errorf("%+v", q)
	}
	for flag, field := range map[string]string{"--bytes-per-second": "spec.qos.bytesPerSecond", "--bytes-burst": "--bytes-burst (spec.qos.bytesBurst): must be greater than or equal to 0 bytes and less than or equal to 1 TB"} {
		value := map[string]string{"--bytes-per-second": "5", "--bytes-burst": "-5"}[flag]
		_, err := l.run("volume", "create", "other", "--pool", "nvme", "--size", "1Gi", flag, value)
		if exitCode(err) != exitUsage || !strings.Contains(reported(err), field) {
			t.Errorf("%s %s: %v", flag, value, err)
		}
	}
}

// The printed objects of one store create the same in another one, and can be applied to the first one again.
func TestThePrintedFormOfEveryNounCreatesTheSameObject(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("snapshot", "create", "monday", "--volume", "orders")
	key := file(t, "a-key-of-ceph")
	l.must("pool", "create", "ceph", "--monitor", "192.0.2.9:3300", "--user", "sluice", "--ceph-key-file", key, "--ceph-pool", "p")
	other := start(t)
	for _, noun := range []string{"fabric", "gatewaypool", "pool", "gateway", "volume", "host", "target", "snapshot"} {
		printed := l.must(noun, "list", "-o", "yaml")
		l.must("apply", "-f", file(t, printed))
		// Secrets are not printed, so another system receives them in a Secret.
		with := strings.NewReplacer("chap: {}", "chap: {secretRef: {name: it}}", "user: sluice", "user: sluice\n      keySecretRef: {name: it}")
		other.must("apply", "-f", file(t, with.Replace(printed)), "-f", file(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\n"+
			"stringData: {password: open-sesame-123, key: a-key-of-ceph}\n"))
		if here, there := specs(l.must(noun, "list", "-o", "json")), specs(other.must(noun, "list", "-o", "json")); here != there {
			t.Errorf("%s:\n%s\nbecame\n%s", noun, here, there)
		}
	}
}

// specs returns the names and specs of printed objects.
func specs(printed string) string {
	var list struct {
		Items []struct {
			Meta struct{ Name string }
			Spec any
		}
	}
	if err := json.Unmarshal([]byte(printed), &list); err != nil {
		return err.Error()
	}
	again, _ := json.MarshalIndent(list.Items, "", " ") // the values were read from JSON
	return string(again)
}

func TestAnUnchangedExportCanBeAppliedRepeatedlyAndAChangedObjectIsNotOverwritten(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	for _, kind := range []string{"fabric", "gatewaypool", "pool", "gateway", "volume", "host", "target"} {
		exported := file(t, l.must(kind, "list", "-o", "yaml"))
		for range 2 {
			if out := l.must("apply", "-f", exported); !strings.Contains(out, " unchanged\n") || strings.Contains(out, "updated") {
				t.Errorf("%s: %s", kind, out)
			}
		}
	}
	exported := file(t, strings.Replace(l.must("volume", "get", "orders", "-o", "yaml"), "sizeBytes:", "writeCache: true\n  sizeBytes:", 1))
	l.must("volume", "resize", "orders", "--size", "2Gi")
	if _, err := l.run("apply", "-f", exported); err == nil {
		t.Error("an older export was applied over a newer object")
	}
}

func TestANameThatYAMLDoesNotReadAsTextIsRefusedWithTheRemedy(t *testing.T) {
	for _, name := range []string{"y", "no", "12"} {
		for _, text := range []string{strings.Replace(goodFabric, "good", name, 1),
			"apiVersion: sluice.dev/v1alpha1\nkind: Fabric\nmetadata: {name: " + name + "}\nspec: {}\n"} {
			_, err := readObjects("-", strings.NewReader(text))
			if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "Write it in quotes") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
