package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// watchAgainAfter is the pause before a broken watch is continued.
const watchAgainAfter = 500 * time.Millisecond

// goal is an object, and the state that it has to reach.
type goal struct {
	kind *kind
	// from is the object after the requested change.
	from proto.Message
	// missing returns what the object still lacks; "": nothing. A nil object was deleted.
	missing func(proto.Message) string
	// refused returns why the goal will never be reached; "": it may be. nil if that cannot be determined.
	refused func(proto.Message) string
	// replaced returns the later request of another user that prevents the goal; "": none. nil if only a deletion can.
	replaced func(from, now proto.Message) string
	// steps are objects of another kind that must be processed before; nil: none are counted.
	steps *steps
}

// steps are counted only for the progress.
type steps struct {
	kind *kind
	// open reports whether an object must still be processed.
	open func(proto.Message) bool
}

func (o goal) String() string { return o.kind.name + " " + metaOf(o.from).GetName() }

// waitError has the missing goals when the time limit was reached or the user interrupted the command.
type waitError struct {
	missing []string
	cause   error
}

func (e *waitError) Error() string {
	why := "time is up"
	if errors.Is(e.cause, context.Canceled) {
		why = "interrupted"
	}
	return why + "; what was asked for goes on, and this is missing yet: " + strings.Join(e.missing, "; ")
}

func (e *waitError) Unwrap() error { return e.cause }

// replacedError has the request of another user that prevents the goal.
type replacedError struct{ wanted, instead, command string }

func (e *replacedError) Error() string {
	return fmt.Sprintf("%s: this is not waited for any more: %s; it is shown by: sluicectl %s", e.wanted, e.instead, e.command)
}

func addWait(command *cobra.Command, wait *bool, usage string) {
	command.Flags().BoolVar(wait, "wait", false, usage+" (exit code 8 when --timeout is over, 9 when another request replaces this one)")
}

// waiting is the state of waitAll: for every goal the object in its last known state, nil if it was deleted.
type waiting struct {
	goals []goal
	last  []proto.Message
	// replaced marks the goals whose name belongs to a new object.
	replaced []bool
	after    int64
	// received has the objects that were received since a Reset: others no longer exist.
	received map[string]bool
}

func newWaiting(goals []goal) *waiting {
	w := &waiting{goals: goals, replaced: make([]bool, len(goals))}
	for _, wanted := range goals {
		w.last = append(w.last, wanted.from)
		if version := metaOf(wanted.from).GetResourceVersion(); w.after == 0 || version < w.after {
			w.after = version
		}
	}
	return w
}

// waitAll returns the objects, nil for a deleted one, once no goal lacks anything. The goals are of one kind. It watches from the
// version of the changes, so it misses nothing, and continues after a lost connection.
func (g *globals) waitAll(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, goals []goal,
) ([]proto.Message, error) {
	if len(goals) == 0 {
		return nil, nil
	}
	w := newWaiting(goals)
	shown := newProgress(command.ErrOrStderr())
	defer shown.end()
	if goals[0].steps != nil {
		stop := goals[0].steps.begin(ctx, connection, shown)
		defer stop()
	}
	for {
		if reached, err := w.checkGoals(shown); reached || err != nil {
			return w.last, err
		}
		var verdict error
		err := goals[0].kind.watch(ctx, connection, w.after, func(received change) bool {
			if !w.apply(received) {
				return false
			}
			reached, err := w.checkGoals(shown)
			verdict = err
			return reached || err != nil
		})
		switch {
		case err == nil:
			return w.last, verdict
		case ctx.Err() != nil:
			return nil, &waitError{w.missing(), ctx.Err()}
		case status.Code(err) == codes.DeadlineExceeded:
			return nil, &waitError{w.missing(), context.DeadlineExceeded}
		case status.Code(err) != codes.Unavailable:
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgainAfter):
		}
	}
}

// apply applies a change, and reports whether it is relevant.
func (w *waiting) apply(received change) bool {
	switch received.kind {
	case pb.ChangeType_CHANGE_TYPE_RESET:
		w.received = map[string]bool{}
	case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
		for i, wanted := range w.goals {
			if w.received != nil && !w.received[metaOf(wanted.from).GetName()] {
				w.last[i] = nil
			}
		}
		w.received, w.after = nil, received.version
		return true
	case pb.ChangeType_CHANGE_TYPE_PUT, pb.ChangeType_CHANGE_TYPE_DELETED:
		name := metaOf(received.object).GetName()
		if w.received != nil {
			w.received[name] = true
		}
		for i, wanted := range w.goals {
			if metaOf(wanted.from).GetName() != name {
				continue
			}
			w.last[i] = received.object
			there := received.kind == pb.ChangeType_CHANGE_TYPE_PUT
			w.replaced[i] = there && metaOf(received.object).GetUid() != metaOf(wanted.from).GetUid()
			if !there || w.replaced[i] {
				w.last[i] = nil
			}
			return w.received == nil
		}
	}
	return false
}

// checkGoals shows the progress and reports whether every goal is reached. An error means that a goal will never be reached.
func (w *waiting) checkGoals(shown *progress) (bool, error) {
	missing := w.missing()
	for i, wanted := range w.goals {
		if wanted.missing(w.last[i]) == "" {
			continue
		}
		if wanted.refused != nil && w.last[i] != nil {
			if why := wanted.refused(w.last[i]); why != "" {
				return false, status.Errorf(codes.FailedPrecondition, "%s: %s", wanted, why)
			}
		}
		if instead, command := w.instead(i); instead != "" {
			return false, &replacedError{wanted.String(), instead, command}
		}
	}
	shown.describe(strings.Join(missing, "; "))
	if len(w.goals) > 1 {
		shown.count(int64(len(w.goals)-len(missing)), int64(len(w.goals)))
	}
	return len(missing) == 0, nil
}

// instead returns the request of another user that prevents a goal, "": none, and the command that shows it.
func (w *waiting) instead(i int) (what, look string) {
	wanted, last := w.goals[i], w.last[i]
	describe := wanted.kind.name + " describe " + metaOf(wanted.from).GetName()
	switch {
	case w.replaced[i]:
		return gone + ", and made another one of that name", describe
	case last == nil:
		return gone, wanted.kind.name + " list"
	case metaOf(last).GetDeleteTime() != nil && metaOf(wanted.from).GetDeleteTime() == nil:
		return "another request deletes it meanwhile", describe
	case wanted.replaced != nil:
		return wanted.replaced(wanted.from, last), describe
	}
	return "", ""
}

// missing returns what each object lacks, with its conditions.
func (w *waiting) missing() []string {
	var all []string
	for i, wanted := range w.goals {
		text := wanted.missing(w.last[i])
		if text == "" {
			continue
		}
		text = fmt.Sprintf("%s: %s", wanted, text)
		if w.last[i] != nil {
			text += troubles(w.last[i])
		}
		all = append(all, text)
	}
	return all
}

// troubles returns the bad conditions of an object as text.
func troubles(object proto.Message) string {
	var problems []string
	for _, condition := range badConditions(object) {
		problems = append(problems, fmt.Sprintf("%s: %s", condition.GetReason(), condition.GetMessage()))
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		return ""
	}
	return " (" + strings.Join(problems, "; ") + ")"
}

// badConditions returns the conditions that report a problem: Degraded if true, others if not true. Progressing is ignored.
func badConditions(object proto.Message) []*pb.Condition {
	return slices.DeleteFunc(conditionsOf(object), func(c *pb.Condition) bool {
		if c.GetType() == "Progressing" {
			return true
		}
		bad := pb.ConditionStatus_CONDITION_STATUS_FALSE
		if c.GetType() == "Degraded" {
			bad = pb.ConditionStatus_CONDITION_STATUS_TRUE
		}
		return c.GetStatus() != bad
	})
}

// begin counts in the background until the returned function is called. If that fails, nothing is counted.
func (s *steps) begin(ctx context.Context, connection *grpc.ClientConn, shown *progress) func() {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	open, most := map[string]bool{}, 0
	go func() {
		defer close(ended)
		_ = s.kind.watch(ctx, connection, 0, func(received change) bool {
			switch received.kind {
			case pb.ChangeType_CHANGE_TYPE_RESET:
				clear(open)
			case pb.ChangeType_CHANGE_TYPE_PUT:
				delete(open, metaOf(received.object).GetName())
				if s.open(received.object) {
					open[metaOf(received.object).GetName()] = true
				}
			case pb.ChangeType_CHANGE_TYPE_DELETED:
				delete(open, metaOf(received.object).GetName())
			case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
				most = max(most, len(open))
				shown.count(int64(most-len(open)), int64(most))
			}
			return false
		})
	}()
	return func() { stop(); <-ended }
}
