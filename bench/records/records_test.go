package records

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generator answers --facts, and otherwise writes its arguments to the file `called` beside it.
func generator(t *testing.T) (path, called string) {
	t.Helper()
	directory := t.TempDir()
	path, called = filepath.Join(directory, "build"), filepath.Join(directory, "called")
	script := "#!/bin/sh\nif [ \"$1\" = --facts ]; then echo '{\"facts\":{\"cpu\":\"A Processor\"}}'; else echo \"$@\" >" + called + "; fi\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, called
}

func TestAFileHoldsTheFactsThenTheRecordsAndTheGeneratorGetsIt(t *testing.T) {
	program, called := generator(t)
	results := filepath.Join(t.TempDir(), "results")
	file, err := Create(results, "failover", program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for n := range 2 {
		if err := file.Write(map[string]int{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file.Path())
	if want := "{\"facts\":{\"cpu\":\"A Processor\"}}\n{\"n\":0}\n{\"n\":1}\n"; err != nil || string(text) != want {
		t.Errorf("%v: %q, not %q", err, text, want)
	}
	if filepath.Dir(file.Path()) != results || !strings.HasPrefix(filepath.Base(file.Path()), "failover-") {
		t.Errorf("the file is %s", file.Path())
	}
	if err := file.Report("reports", "failover-rbd"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(called)
	if want := file.Path() + " --out reports --name failover-rbd --print\n"; err != nil || string(got) != want {
		t.Errorf("%v: %q, not %q", err, got, want)
	}
}

func TestARunWithoutMeasurementsHasNoReport(t *testing.T) {
	program, called := generator(t)
	file, err := Create(t.TempDir(), "scale", program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Facts(map[string]any{"storage": "Ceph RBD"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file.Path()); err != nil || !strings.HasSuffix(string(text), "\n{\"facts\":{\"storage\":\"Ceph RBD\"}}\n") {
		t.Errorf("%v: %q", err, text)
	}
	if err := file.Report("reports", "scale"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(called); err == nil {
		t.Error("the generator ran")
	}
}

func TestAMissingGeneratorIsNamed(t *testing.T) {
	if _, err := Create(t.TempDir(), "scale", "/none/such"); err == nil || !strings.Contains(err.Error(), "/none/such") {
		t.Errorf("%v", err)
	}
}
