package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestTheRecordsHaveTheKeysThatTheReportReads(t *testing.T) {
	f := &figures{Gateways: 4, LUNs: 11, Sessions: 10, Made: 6.5, Login: 0.25, Failed: "gw-3 is gone",
		Memory: []memory{{What: "memory", Stage: full, Gateways: 4, LUNs: 11, RSS: 2048, PSS: 1024}},
		Deaths: []death{{What: "death", LUNs: 3, Failover: 0.5, PortalsOpen: 0.125, FirstAnswer: 0.25}}}
	var lines []string
	record := func(r any) error {
		line, err := json.Marshal(r)
		lines = append(lines, string(line))
		return err
	}
	if err := f.write(record); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"what":"run","gateways":4,"luns":11,"sessions":10,"madeSeconds":6.5,"loginSeconds":0.25,"usedLUNs":4,"failed":"gw-3 is gone"}`,
		`{"what":"memory","stage":"all LUNs, no session","gateways":4,"luns":11,"sessions":0,"rssBytes":2048,"pssBytes":1024}`,
		`{"what":"death","luns":3,"failoverSeconds":0.5,"portalsOpenSeconds":0.125,"firstAnswerSeconds":0.25}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	var nothing *figures
	if err := nothing.write(record); err != nil || len(lines) != len(want) {
		t.Errorf("nothing was measured, and there is a record: %v", err)
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
