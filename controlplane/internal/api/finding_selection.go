package api

import (
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/findings"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// findingSelection is a request that selects findings.
type findingSelection interface {
	GetMinSeverity() pb.FindingSeverity
	GetKind() string
	GetName() string
	GetEachObject() bool
}

// groupedFindings returns the findings of items; with eachObject, one for each object and without consequences.
func groupedFindings(items []findings.Item, eachObject bool) []findings.Finding {
	if !eachObject {
		return findings.Group(items)
	}
	all := make([]findings.Finding, len(items))
	for i, item := range items {
		all[i] = findings.Finding{Item: item, Worst: item.Severity, Objects: []findings.Ref{item.Ref}}
	}
	return all
}

// selects reports whether a request selects a finding: by one of its objects, or by a consequence.
func selects(r findingSelection, found findings.Finding) bool {
	wanted := func(ref findings.Ref, severity findings.Severity) bool {
		return int32(severity) >= int32(r.GetMinSeverity()) && (r.GetKind() == "" || strings.EqualFold(string(ref.Kind), r.GetKind())) &&
			(r.GetName() == "" || ref.Name == r.GetName())
	}
	return slices.ContainsFunc(found.Objects, func(ref findings.Ref) bool { return wanted(ref, found.Worst) }) ||
		slices.ContainsFunc(found.Consequences, func(item findings.Item) bool { return wanted(item.Ref, item.Severity) })
}
