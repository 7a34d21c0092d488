package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// model is one block: a register with compare-and-swap. An operation without an answer may have been executed or not.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{Value(0)} },
	Step: func(state, input, _ any) []any {
		now, o := state.(Value), input.(Operation)
		switch {
		case o.Kind == Read && o.Got == now,
			o.Kind == Swap && !o.Maybe && !o.Swapped && o.Old != now:
			return []any{now}
		case o.Kind == Write && !o.Maybe,
			o.Kind == Swap && !o.Maybe && o.Swapped && o.Old == now:
			return []any{o.New}
		case o.Kind == Write, o.Kind == Swap && o.Maybe && o.Old == now:
			return []any{o.New, now}
		case o.Kind == Swap && o.Maybe:
			return []any{now}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string { return input.(Operation).String() },
	DescribeState:     func(state any) string { return state.(Value).String() },
}

// Verdict of a history.
type Verdict struct {
	// Wrong has a text for each block that cannot be explained.
	Wrong []string
	// Undecided are blocks whose search took too long.
	Undecided []Place
	// Operations and Blocks that were checked.
	Operations, Blocks int
	// Maybes is the number of operations without an answer.
	Maybes int
}

const shown = 12 // operations around a fault

// Linearizable searches, for each block, an order that explains the history; `patience` bounds the search of one block. draw, if
// set, writes a page that shows the failure.
func Linearizable(all []Operation, patience time.Duration, draw func(Place, porcupine.LinearizationInfo, porcupine.Model)) Verdict {
	verdict := Verdict{Operations: len(all)}
	deterministic := model.ToModel()
	for _, block := range byPlace(all) {
		verdict.Blocks++
		last := int64(0)
		for _, o := range block {
			if o.Maybe {
				verdict.Maybes++
			}
			last = max(last, o.Call)
			if o.Return != Never {
				last = max(last, o.Return)
			}
		}
		operations := make([]porcupine.Operation, len(block))
		for i, o := range block {
			operations[i] = porcupine.Operation{ClientId: i, Input: o, Call: o.Call, Return: min(o.Return, last+1)}
		}
		result, info := porcupine.CheckOperationsVerbose(deterministic, operations, patience)
		switch result {
		case porcupine.Unknown:
			verdict.Undecided = append(verdict.Undecided, block[0].Place)
		case porcupine.Illegal:
			verdict.Wrong = append(verdict.Wrong, explain(block, info))
			if draw != nil {
				draw(block[0].Place, info, deterministic)
			}
		}
	}
	return verdict
}

func byPlace(all []Operation) [][]Operation {
	places := map[Place][]Operation{}
	for _, o := range all {
		places[o.Place] = append(places[o.Place], o)
	}
	var blocks [][]Operation
	for _, block := range places {
		slices.SortStableFunc(block, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
		blocks = append(blocks, block)
	}
	slices.SortFunc(blocks, func(a, b []Operation) int {
		return cmp.Or(cmp.Compare(a[0].Place.LUN, b[0].Place.LUN), cmp.Compare(a[0].Place.Block, b[0].Place.Block))
	})
	return blocks
}

// explain shows the operations around the first one that is missing in the longest explanation.
func explain(block []Operation, info porcupine.LinearizationInfo) string {
	longest := 0
	explained := map[int]bool{}
	for _, partial := range info.PartialLinearizations()[0] {
		if len(partial) > longest {
			longest = len(partial)
			explained = map[int]bool{}
			for _, id := range partial {
				explained[id] = true
			}
		}
	}
	first := -1
	for i, o := range block {
		if !explained[i] && !o.Maybe && (first < 0 || o.Return < block[first].Return) {
			first = i
		}
	}
	if first < 0 {
		first = 0
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%v: no order of its %d operations explains them; at the latest here (!):\n", block[0].Place, len(block))
	for i := max(0, first-shown); i < min(len(block), first+shown/2); i++ {
		mark := ' '
		if i == first {
			mark = '!'
		}
		fmt.Fprintf(&text, "  %c %v\n", mark, block[i])
	}
	return text.String()
}

// Missing finds lost acknowledged writes: a value is read although a later one was acknowledged before the read began. It also
// finds values that no client wrote, or whose write was certainly not executed. Each is a violation, described in a sentence;
// Linearizable finds more.
func Missing(all []Operation) []string {
	var found []string
	for _, block := range byPlace(all) {
		found = append(found, missing(block)...)
	}
	return found
}

func missing(block []Operation) []string {
	// The latest time at which each value may have been written: a retry stores the same value again.
	begin, end := map[Value]int64{0: math.MinInt64}, map[Value]int64{0: math.MinInt64}
	var acknowledged []Operation
	for _, o := range block {
		if o.Kind == Read || o.Kind == Swap && !o.Maybe && !o.Swapped {
			continue
		}
		if at, known := begin[o.New]; !known || o.Call < at {
			begin[o.New] = o.Call
		}
		if at, known := end[o.New]; !known || o.Return > at {
			end[o.New] = o.Return
		}
		if !o.Maybe {
			acknowledged = append(acknowledged, o)
		}
	}
	slices.SortFunc(acknowledged, func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) })
	// latest[i]: of the first i+1 acknowledged writes, the one that began last.
	latest := make([]Operation, len(acknowledged))
	for i, o := range acknowledged {
		latest[i] = o
		if i > 0 && latest[i-1].Call > o.Call {
			latest[i] = latest[i-1]
		}
	}
	var found []string
	for _, read := range block {
		if read.Kind != Read {
			continue
		}
		at, written := begin[read.Got]
		switch {
		case !written:
			found = append(found, fmt.Sprintf("%v: a value that was never written, or whose write was refused: %v", read.Place, read))
		case at > read.Return:
			found = append(found, fmt.Sprintf("%v: a value from the future: %v", read.Place, read))
		}
		before, _ := slices.BinarySearchFunc(acknowledged, read.Call, func(o Operation, call int64) int {
			if o.Return < call {
				return -1
			}
			return 1
		})
		if written && before > 0 && latest[before-1].Call > end[read.Got] {
			found = append(found, fmt.Sprintf("%v: an acknowledged write is missing: %v\n    was acknowledged before %v",
				read.Place, latest[before-1], read))
		}
	}
	return found
}
