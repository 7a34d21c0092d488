package defaults

import (
	"slices"
	"testing"
)

// table has all clauses, in the order of their sources.
func table() []proof {
	return slices.Concat(messages, stream, resources, programs, keys, values)
}

func TestEachDocumentedDefaultIsProvenWhereItTakesEffect(t *testing.T) {
	documented, err := Collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	known, err := ReadTests("../..")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[Documented]proof{}
	for _, p := range table() {
		d := Documented{p.where, p.text}
		if _, twice := entries[d]; twice {
			t.Errorf("the table has %s twice", d)
		}
		if (len(p.tests) == 0) == (p.none == "") {
			t.Errorf("the table has neither tests nor a reason, or both, for %s", d)
		}
		entries[d] = p
	}
	counts := map[string]int{}
	used := map[Documented]bool{}
	for _, d := range documented {
		tests := proven(d)
		kind := "values proven with all others of their source"
		if tests == nil {
			entry, has := entries[d]
			used[d] = true
			if !has {
				t.Errorf("%s\nhas no proof: add it to the table of tests/defaults, with a test that proves it where it takes effect", d)
				continue
			}
			tests, kind = entry.tests, "clauses proven by tests of their own"
			if entry.none != "" {
				kind = "clauses that document no default"
			}
		}
		counts[kind]++
		for _, name := range tests {
			if why := known.Missing(name); why != "" {
				t.Errorf("%s\nnames a test that is not there: %s", d, why)
			}
		}
	}
	for d := range entries {
		if !used[d] {
			t.Errorf("the table has a proof of %s\nwhich nothing documents any more", d)
		}
	}
	t.Logf("%d documented: %v", len(documented), counts)
}
