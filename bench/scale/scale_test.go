package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func some() *figures {
	weighed := func(stage string, luns, sessions int, pss int64) memory {
		return memory{What: "memory", Stage: stage, Gateways: 4, LUNs: luns, Sessions: sessions, RSS: 2 * pss, PSS: pss}
	}
	const kib = 1 << 10
	return &figures{Gateways: 4, LUNs: 11, Sessions: 10, Memory: []memory{weighed(empty, 1, 0, 1000*kib),
		weighed(full, 11, 0, 1080*kib), weighed(loggedIn, 11, 10, 1580*kib), weighed(used, 11, 10, 1680*kib)},
		Deaths: []death{{"death", 3, 0.5, 0.1, 0.2}, {"death", 3, 0.9, 0.2, 0.3}, {"death", 2, 0.6, 0.3, 0.4}}}
}

func TestALUNCountsInEachGatewayAndASessionInItsOwn(t *testing.T) {
	f := some()
	if lun, ok := f.perLUN(); !ok || lun != 2<<10 {
		t.Errorf("a LUN takes %d", lun)
	}
	if session, ok := f.perSession(loggedIn); !ok || session != 50<<10 {
		t.Errorf("a session takes %d", session)
	}
	if session, ok := f.perSession(used); !ok || session != 60<<10 {
		t.Errorf("a session in use takes %d", session)
	}
	if _, ok := (&figures{}).perSession(used); ok {
		t.Error("a session has a size that nobody measured")
	}
}

func TestTheReportHasEveryFigureAndTheRecordsToo(t *testing.T) {
	base := filepath.Join(t.TempDir(), "report")
	if err := write(some(), base); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(base + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# 11 LUNs, 10 sessions, 4 gateways", "| a LUN, in each gateway that exports it | 2.0 |",
		"| a session, logged in | 50.0 |", "LUNs (3 and the like) | 0.600 | 0.900 |", "portals are open, with 11 LUNs | 0.200 | 0.300 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "early") {
		t.Errorf("it says that the run failed:\n%s", text)
	}
	failed := some()
	failed.Failed = "gw-3 is gone\nits log"
	if !strings.Contains(failed.markdown(), "**The run ended early**: gw-3 is gone\n") {
		t.Errorf("it does not say why the run ended:\n%s", failed.markdown())
	}
	lines, err := os.ReadFile(base + ".jsonl")
	if err != nil || strings.Count(string(lines), "\n") != 7 {
		t.Errorf("records: %v\n%s", err, lines)
	}
}

func TestSettingsThatCannotBeAreRefusedByName(t *testing.T) {
	good := settings{gateways: 16, luns: 1024, sessions: 1024, kills: 5}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]settings{
		"-gateways": {gateways: 1, luns: 2, sessions: 3, kills: 1}, "-luns": {gateways: 2, luns: 1025, sessions: 3, kills: 1},
		"-sessions": {gateways: 2, luns: 2, kills: 1}, "-kills": {gateways: 2, luns: 2, sessions: 3, kills: 3}} {
		if err := bad.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
