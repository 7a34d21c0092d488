package main

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

func TestPruneDeletesTheSelectedObjectsThatNoFileHas(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("apply", "-f", file(t, shopFiles))
	l.must("fabric", "create", "old", "--label", "app=shop")
	l.must("fabric", "create", "other", "--label", "app=other")
	first, _, _ := strings.Cut(shopFiles, "---")
	files := file(t, first)
	if out := l.must("apply", "-f", files, "--prune", "-l", "app=shop", "--dry-run"); out != "volume logs updated (dry run: nothing was changed)\n"+
		"fabric old deleted (dry run: nothing was changed)\ntarget shop deleted (dry run: nothing was changed)\n" {
		t.Error(out)
	}
	_, err := l.run("apply", "-f", files, "--prune", "-l", "app=shop")
	if exitCode(err) != exitNotNow || !strings.Contains(reported(err), "they are to be deleted: Fabric old, Target shop; nothing was done") {
		t.Errorf("without a terminal: %v", err)
	}
	l.must("target", "get", "shop")
	if out := l.must("apply", "-f", files, "--prune", "-l", "app=shop", "--yes"); out != "volume logs updated\nfabric old deleted\ntarget shop is being deleted\n" {
		t.Error(out)
	}
	if out := l.must("fabric", "list", "-l", "app=shop"); strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	l.must("fabric", "get", "other", "red")
	l.must("volume", "get", "logs")
}

func TestPruneDeletesAnObjectOnceTheObjectsThatNameItAreGone(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("apply", "-f", file(t, shopFiles))
	empty := file(t, goodFabric)
	r := l.begin(t.Context(), "apply", "-f", empty, "--prune", "-l", "app=shop", "--yes")
	r.err.until(t, "target shop: it is still being deleted")
	target, err := l.Targets.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	storetest.During(t, l.Store, func(term *store.Term) { err = term.Remove(t.Context(), target) })
	if err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; err != nil || !strings.HasSuffix(r.out.String(), "target shop is being deleted\nvolume logs is being deleted\n") {
		t.Errorf("%v: %s", err, r.out)
	}
}

func TestPruneNeedsASelector(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "red")
	for _, arguments := range []string{"--prune --yes", "--prune --yes -l ", "-l app=shop"} {
		_, err := l.run(append([]string{"apply", "-f", file(t, goodFabric)}, strings.Split(arguments, " ")...)...)
		if exitCode(err) != exitUsage {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	l.must("fabric", "get", "red")
}
