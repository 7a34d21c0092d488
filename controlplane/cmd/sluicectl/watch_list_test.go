package main

import (
	"context"
	"strings"
	"testing"
)

func TestAWatchedListShowsEachChangeAlsoAfterAReplicaWasRestarted(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "b", "--subnet", "192.0.2.0/24")
	l.must("fabric", "create", "other", "--label", "team=x")
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "fabric", "list", "--watch", "-l", "team=x")
	all := l.begin(ctx, "fabric", "list", "--watch")
	r.out.until(t, "other")
	all.out.until(t, "other")
	l.must("fabric", "create", "a")
	all.out.until(t, "\na ")
	l.stop()
	all.err.until(t, "not reachable")
	l.serve()
	l.must("fabric", "delete", "b")
	all.out.until(t, "deleted")
	l.must("fabric", "create", "c", "--label", "team=x")
	r.out.until(t, "\nc ")
	interrupt()
	for _, running := range []*running{r, all} {
		if err := <-running.ended; err != nil {
			t.Errorf("an interrupt is no error: %v", err)
		}
	}
	lines := strings.Split(strings.TrimSpace(all.out.String()), "\n")
	if len(lines) < 5 || !strings.HasPrefix(lines[0], "NAME") || !strings.HasPrefix(lines[1], "b ") || !strings.HasPrefix(lines[2], "other ") ||
		!strings.HasPrefix(lines[3], "a ") || !strings.HasPrefix(lines[4], "b ") || !strings.HasSuffix(lines[4], "deleted") {
		t.Errorf("%q", lines)
	}
	if at := strings.Index(lines[0], "SUBNETS"); !strings.HasPrefix(lines[1][at:], "192.0.2.0/24") || !strings.HasPrefix(lines[3][at:], "- ") {
		t.Errorf("the columns do not align: %q", lines)
	}
	if out := r.out.String(); strings.Contains(out, "\na ") || strings.Contains(out, "\nb ") {
		t.Errorf("without the label: %s", out)
	}
}

func TestAWatchedListInYAMLIsADocumentForEachChange(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "a")
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "fabric", "list", "--watch", "-o", "yaml")
	r.out.until(t, "name: a")
	l.must("fabric", "create", "b")
	r.out.until(t, "name: b")
	interrupt()
	if err := <-r.ended; err != nil || strings.Count(r.out.String(), "---\n") != 2 {
		t.Errorf("%v\n%s", err, r.out)
	}
}
