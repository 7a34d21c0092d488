package placement

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Problem is a defect of the input that the plan had to work around.
type Problem struct {
	// Kind and Name of the object.
	Kind model.Kind
	Name string
	// Reason is one CamelCase word for programs.
	Reason string
	// Wrong is a sentence that states the defect. The next field is a sentence that states the remedy.
	Wrong string
	Mend  string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s %s: %s; %s", p.Kind, p.Name, p.Wrong, p.Mend)
}

// Reasons of problems.
const (
	ReasonDuplicate         = "Duplicate"
	ReasonOutOfRange        = "OutOfRange"
	ReasonUnknownFabric     = "UnknownFabric"
	ReasonUnknownSwitch     = "UnknownSwitch"
	ReasonUnknownGateway    = "UnknownGateway"
	ReasonUnknownVolume     = "UnknownVolume"
	ReasonUnknownHost       = "UnknownHost"
	ReasonUnknownPool       = "UnknownPool"
	ReasonNoPortals         = "NoPortals"
	ReasonDisconnected      = "Disconnected"
	ReasonUnreachable       = "Unreachable"
	ReasonTooFewGateways    = "TooFewGateways"
	ReasonTooManyNodes      = "TooManyNodes"
	ReasonNoGatewayOnNode   = "NoGatewayOnNode"
	ReasonDrainBlocked      = "DrainBlocked"
	ReasonNoOwner           = "NoOwner"
	ReasonPathSetsDontMeet  = "PathSetsDontMeet"
	ReasonMissingPool       = "MissingStoragePool"
	ReasonAmbiguousPosition = "AmbiguousPosition"
)

// problems collects problems, so that no stage stops at a defect that another one can work around.
type problems struct{ found []Problem }

func (p *problems) add(kind model.Kind, name, reason, wrong, mend string) {
	p.found = append(p.found, Problem{kind, name, reason, wrong, mend})
}

// sorted returns each problem once, in an order that does not depend on the input's.
func (p *problems) sorted() []Problem {
	slices.SortFunc(p.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Wrong, b.Wrong), cmp.Compare(a.Mend, b.Mend))
	})
	return slices.Compact(p.found)
}
