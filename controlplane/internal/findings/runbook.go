package findings

import (
	"fmt"
	"strings"
)

// runbookPage is the generated page, relative to the root of the source.
const runbookPage = "docs/RUNBOOK.md"

// String returns the severity as the API's users write it.
func (s Severity) String() string {
	switch s {
	case Advice:
		return "advice"
	case Warning:
		return "warning"
	case Critical:
		return "critical"
	}
	return "unknown"
}

// Runbook returns the page with one section for each rule.
func Runbook() string {
	var page strings.Builder
	page.WriteString(`# Runbook

<!-- Generated from controlplane/internal/findings/rules.go by ` + "`make generate`" + `. Do not edit. -->

The control plane computes what is wrong with a system. ` + "`sluicectl doctor`" + ` shows every finding. ` + "`sluicectl status`" + ` shows
those that are critical or warnings. The metric ` + "`sluice_controlplane_findings{finding,severity}`" + ` counts the objects of each. This page says what each
finding means, what hosts notice, and what to do.

- **critical**: a permitted host cannot use the object now, or the control plane cannot react to the next fault.
- **warning**: hosts can use their volumes. The next fault, the next change or the passing of time can end that.
- **advice**: nothing fails now. The set-up differs from what is recommended, or a request waits for its user.

A finding can have less than the severity given here: if no host needs the object, or if another gateway still serves it. Faults that follow
from another one are shown below it, as its consequences.

| finding | severity | what is wrong |
|---|---|---|
`)
	for _, r := range Rules {
		fmt.Fprintf(&page, "| [%s](#%s) | %s | %s |\n", r.ID, strings.ToLower(r.ID), r.Severity, r.Meaning)
	}
	for _, r := range Rules {
		fmt.Fprintf(&page, "\n## %s\n\n%s %s\n\n- **Hosts**: %s\n- **Remedy**: %s\n", r.ID, strings.ToUpper(r.Severity.String()[:1])+
			r.Severity.String()[1:]+".", r.Meaning, r.Effect, r.Remedy)
	}
	return page.String()
}
