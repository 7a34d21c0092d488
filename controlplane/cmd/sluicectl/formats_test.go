package main

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestNamesAndSelectedFieldsOfObjectsArePrinted(t *testing.T) {
	l := start(t)
	for _, c := range []struct{ command, out string }{
		{"fabric create a --switch s -o name", "fabric/a\n"},
		{"fabric create b -o jsonpath={.meta.name}", "b\n"},
		{"fabric list -o name", "fabric/a\nfabric/b\n"},
		{"fabric get a -o name", "fabric/a\n"},
		{"fabric get b a -o name", "fabric/b\nfabric/a\n"},
		{"fabric list -o jsonpath={.items[*].meta.name}", "a b\n"},
		{"fabric list -o jsonpath={range.items[*]}{.meta.name}:{.spec.switches[0]};{end}", "a:s;b:b;\n"},
		{"fabric get a -o jsonpath={.kind}/{.meta.name}", "Fabric/a\n"},
		{"fabric get a -o jsonpath=.meta.name", "a\n"},
		{"fabric get a -o jsonpath={.meta.none}", "\n"},
		{"fabric set a --switch t -o name", "fabric/a\n"},
		{"status -o jsonpath={.controlPlane.version}", "9.8.7\n"},
		{"session list -o name", ""},
		{"session list -o jsonpath={.kind}", "List\n"},
		{"top hosts -o jsonpath={.loads}", "[]\n"},
	} {
		if out := l.must(strings.Fields(c.command)...); out != c.out {
			t.Errorf("%s: %q", c.command, out)
		}
	}
	if out := l.must("apply", "-o", "name", "-f", file(t, goodFabric+"---\n"+strings.Replace(goodFabric, "good", "other", 1))); out != "fabric/good\nfabric/other\n" {
		t.Error(out)
	}
}

func TestATemplateOrAFormatThatCannotBeUsedIsRefusedBeforeAnythingIsDone(t *testing.T) {
	l := start(t)
	before := l.revision()
	for _, format := range []string{"jsonpath={.meta", "jsonpath={.items[}", "jsonpath", "names"} {
		if _, err := l.run("fabric", "create", "a", "-o", format); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--output") {
			t.Errorf("%s: %v", format, err)
		}
	}
	if after := l.revision(); after != before {
		t.Errorf("something was stored: revision %d, it was %d", after, before)
	}
	if err := store.NewEventLog(l.Store).Record(t.Context(), model.Event{Object: model.KindVolume, Name: "orders", Reason: "Moved"}); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status -o name", "top hosts -o name", "events -o name", "context list -o name"} {
		if _, err := l.run(strings.Fields(command)...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "shows no objects with names") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestAWatchedListAndFollowedEventsPrintALineForEachChangeInEachFormat(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "a")
	log := store.NewEventLog(l.Store)
	record := func(name string) {
		if err := log.Record(t.Context(), model.Event{Object: model.KindVolume, Name: name, Reason: "Moved"}); err != nil {
			t.Fatal(err)
		}
	}
	record("orders")
	ctx, interrupt := context.WithCancel(t.Context())
	names := l.begin(ctx, "fabric", "list", "--watch", "-o", "name")
	fields := l.begin(ctx, "fabric", "list", "--watch", "-o", "jsonpath={.meta.name}!")
	events := l.begin(ctx, "events", "--follow", "-o", "jsonpath={.name}: {.reason}")
	names.out.until(t, "fabric/a\n")
	fields.out.until(t, "a!\n")
	events.out.until(t, "orders: Moved")
	l.must("fabric", "create", "b")
	record("logs")
	names.out.until(t, "fabric/b\n")
	fields.out.until(t, "b!\n")
	events.out.until(t, "logs: Moved\n")
	interrupt()
	for _, running := range []*running{names, fields, events} {
		if err := <-running.ended; err != nil {
			t.Error(err)
		}
	}
}
