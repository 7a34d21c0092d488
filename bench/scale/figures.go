package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Stages of memory.
const (
	empty    = "one LUN, no session"
	full     = "all LUNs, no session"
	loggedIn = "all LUNs, all sessions"
	used     = "the same, each session has used some LUNs"
)

// memory of all gateways together, at a stage of the run.
type memory struct {
	What     string `json:"what"` // "memory"
	Stage    string `json:"stage"`
	Gateways int    `json:"gateways"`
	LUNs     int    `json:"luns"`
	Sessions int    `json:"sessions"`
	// RSS counts what gateways share for each of them, PSS for all of them once; in bytes.
	RSS int64 `json:"rssBytes"`
	PSS int64 `json:"pssBytes"`
}

// death is one gateway that was killed and started again.
type death struct {
	What string `json:"what"` // "death"
	// LUNs it owned; all of them had another owner after Failover seconds.
	LUNs     int     `json:"luns"`
	Failover float64 `json:"failoverSeconds"`
	// From its start until its portals took connections, and until a host was logged in and a LUN answered; seconds.
	PortalsOpen float64 `json:"portalsOpenSeconds"`
	FirstAnswer float64 `json:"firstAnswerSeconds"`
}

// figures are what a run has found.
type figures struct {
	Gateways, LUNs, Sessions int
	// Made is how long it took until all LUNs were made and owned, Login until all sessions were there; seconds.
	Made, Login float64
	Memory      []memory
	Deaths      []death
	// Failed is why the run ended before its end; empty: it did not.
	Failed string
}

func (f *figures) at(stage string) (memory, bool) {
	i := slices.IndexFunc(f.Memory, func(m memory) bool { return m.Stage == stage })
	if i < 0 {
		return memory{}, false
	}
	return f.Memory[i], true
}

// perLUN is what a LUN takes in one gateway, perSession what a session takes in the gateway it is with; bytes of PSS, false:
// not measured.
func (f *figures) perLUN() (int64, bool) {
	before, ok := f.at(empty)
	after, also := f.at(full)
	if !ok || !also || after.LUNs == before.LUNs {
		return 0, false
	}
	return (after.PSS - before.PSS) / int64((after.LUNs-before.LUNs)*after.Gateways), true
}

func (f *figures) perSession(stage string) (int64, bool) {
	before, ok := f.at(full)
	after, also := f.at(stage)
	if !ok || !also || after.Sessions == 0 {
		return 0, false
	}
	return (after.PSS - before.PSS) / int64(after.Sessions), true
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func (f *figures) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %d LUNs, %d sessions, %d gateways on one machine\n\n"+
		"Every gateway exports every LUN and has one reactor. All LUNs were made and owned after %.1f s, all sessions logged in after\n"+
		"%.1f s. Memory is of all gateways together; PSS counts what they share once. A LUN's share is of each gateway, a\n"+
		"session's of the one it is with.\n\n## Memory\n\n| stage | LUNs | sessions | RSS MiB | PSS MiB | PSS of a gateway MiB |\n|%s\n",
		f.LUNs, f.Sessions, f.Gateways, f.Made, f.Login, strings.Repeat("---|", 6))
	const mib = 1 << 20
	for _, m := range f.Memory {
		fmt.Fprintf(&text, "| %s | %d | %d | %.1f | %.1f | %.1f |\n", m.Stage, m.LUNs, m.Sessions, float64(m.RSS)/mib,
			float64(m.PSS)/mib, float64(m.PSS)/mib/float64(m.Gateways))
	}
	text.WriteString("\n| what | KiB |\n|---|---|\n")
	row := func(what string, bytes int64, known bool) {
		if known {
			fmt.Fprintf(&text, "| %s | %.1f |\n", what, float64(bytes)/1024)
		}
	}
	lun, known := f.perLUN()
	row("a LUN, in each gateway that exports it", lun, known)
	session, known := f.perSession(loggedIn)
	row("a session, logged in", session, known)
	session, known = f.perSession(used)
	row(fmt.Sprintf("a session that has used %d LUNs", usedLUNs), session, known)
	f.deaths(&text)
	if f.Failed != "" {
		first, _, _ := strings.Cut(f.Failed, "\n")
		fmt.Fprintf(&text, "\n**The run ended early**: %s\n", first)
	}
	return text.String()
}

func (f *figures) deaths(text *strings.Builder) {
	if len(f.Deaths) == 0 {
		return
	}
	fmt.Fprintf(text, "\n## A gateway dies and starts again, %d times\n\n"+
		"Failover is from SIGKILL until the control plane has told of another owner that serves, for the last of its LUNs.\n\n"+
		"| what | median s | max s |\n|---|---|---|\n", len(f.Deaths))
	luns := f.Deaths[0].LUNs
	for _, row := range []struct {
		what string
		of   func(death) float64
	}{
		{fmt.Sprintf("failover of all its LUNs (%d and the like)", luns), func(d death) float64 { return d.Failover }},
		{fmt.Sprintf("from its start until its portals are open, with %d LUNs", f.LUNs), func(d death) float64 { return d.PortalsOpen }},
		{"from its start until a LUN answers a host", func(d death) float64 { return d.FirstAnswer }},
	} {
		var values []float64
		for _, d := range f.Deaths {
			values = append(values, row.of(d))
		}
		fmt.Fprintf(text, "| %s | %.3f | %.3f |\n", row.what, median(values), slices.Max(values))
	}
}

// write leaves report and records, if anything was measured.
func write(f *figures, base string) error {
	if f == nil || len(f.Memory) == 0 {
		return nil
	}
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	var failed error
	for _, m := range f.Memory {
		failed = errors.Join(failed, encoder.Encode(m))
	}
	for _, d := range f.Deaths {
		failed = errors.Join(failed, encoder.Encode(d))
	}
	text := f.markdown()
	fmt.Print(text)
	return errors.Join(failed, os.WriteFile(base+".jsonl", []byte(lines.String()), 0o644),
		os.WriteFile(base+".md", []byte(text), 0o644))
}
