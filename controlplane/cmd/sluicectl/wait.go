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

// watchAgainAfter is how long a watch that broke off waits before it goes on.
const watchAgainAfter = 500 * time.Millisecond

// goal is an object on its way to what was asked for.
type goal struct {
	kind *kind
	// from is the object as the change that was asked for left it.
	from proto.Message
	// missing says what the object still lacks, "" for nothing; nil is an object that is gone.
	missing func(proto.Message) string
	// refused says why what was asked for never comes about, "" while it may; nil where that cannot be told.
	refused func(proto.Message) string
	// replaced says what somebody asked for after the change that left from, so that what was asked for there never comes about; ""
	// for nothing. nil where there is nothing but the deletion.
	replaced func(from, now proto.Message) string
	// steps are objects of another kind that are to be done on the way; nil where there are none to count.
	steps *steps
}

// steps are counted for the progress only.
type steps struct {
	kind *kind
	// open says that an object is still to be done.
	open func(proto.Message) bool
}

func (o goal) String() string { return o.kind.name + " " + metaOf(o.from).GetName() }

// waitError says what had not come about when time was up, or when somebody interrupted.
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

// replacedError says what somebody else asked for, so that waiting on is in vain.
type replacedError struct{ wanted, instead, look string }

func (e *replacedError) Error() string {
	return fmt.Sprintf("%s: this is not waited for any more: %s; look: sluicectl %s", e.wanted, e.instead, e.look)
}

func addWait(command *cobra.Command, wait *bool, usage string) {
	command.Flags().BoolVar(wait, "wait", false, usage+" (exit code 8 when --timeout is over, 9 when somebody asks for something else)")
}

// waiting is what waitAll knows: of every goal the object as it was told last, nil where it is gone.
type waiting struct {
	goals []goal
	last  []proto.Message
	// another says of which goals there is another object of that name.
	another []bool
	after   int64
	// told are the objects that were told since a Reset: what is not among them is gone.
	told map[string]bool
}

func newWaiting(goals []goal) *waiting {
	w := &waiting{goals: goals, another: make([]bool, len(goals))}
	for _, wanted := range goals {
		w.last = append(w.last, wanted.from)
		if version := metaOf(wanted.from).GetResourceVersion(); w.after == 0 || version < w.after {
			w.after = version
		}
	}
	return w
}

// waitAll returns the objects, nil for one that is gone, once none lacks anything. The goals are of one kind. It watches from the
// version that the changes left, so nothing that happens is missed, and goes on after a lost connection.
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
		if reached, err := w.look(shown); reached || err != nil {
			return w.last, err
		}
		var verdict error
		err := goals[0].kind.watch(ctx, connection, w.after, func(told change) bool {
			if !w.take(told) {
				return false
			}
			reached, err := w.look(shown)
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

// take takes up a change and says whether it is worth a look.
func (w *waiting) take(told change) bool {
	switch told.kind {
	case pb.ChangeType_CHANGE_TYPE_RESET:
		w.told = map[string]bool{}
	case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
		for i, wanted := range w.goals {
			if w.told != nil && !w.told[metaOf(wanted.from).GetName()] {
				w.last[i] = nil
			}
		}
		w.told, w.after = nil, told.version
		return true
	case pb.ChangeType_CHANGE_TYPE_PUT, pb.ChangeType_CHANGE_TYPE_DELETED:
		name := metaOf(told.object).GetName()
		if w.told != nil {
			w.told[name] = true
		}
		for i, wanted := range w.goals {
			if metaOf(wanted.from).GetName() != name {
				continue
			}
			w.last[i] = told.object
			there := told.kind == pb.ChangeType_CHANGE_TYPE_PUT
			w.another[i] = there && metaOf(told.object).GetUid() != metaOf(wanted.from).GetUid()
			if !there || w.another[i] {
				w.last[i] = nil
			}
			return w.told == nil
		}
	}
	return false
}

// look shows how far it is and says whether every goal is reached; an error says that one never will be.
func (w *waiting) look(shown *progress) (bool, error) {
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
		if instead, look := w.instead(i); instead != "" {
			return false, &replacedError{wanted.String(), instead, look}
		}
	}
	shown.says(strings.Join(missing, "; "))
	if len(w.goals) > 1 {
		shown.count(int64(len(w.goals)-len(missing)), int64(len(w.goals)))
	}
	return len(missing) == 0, nil
}

// instead says what somebody asked for that keeps a goal from being reached, "" for nothing, and the command to look by.
func (w *waiting) instead(i int) (what, look string) {
	wanted, last := w.goals[i], w.last[i]
	describe := wanted.kind.name + " describe " + metaOf(wanted.from).GetName()
	switch {
	case w.another[i]:
		return gone + ", and made another one of that name", describe
	case last == nil:
		return gone, wanted.kind.name + " list"
	case metaOf(last).GetDeleteTime() != nil && metaOf(wanted.from).GetDeleteTime() == nil:
		return "somebody has asked for its deletion meanwhile", describe
	case wanted.replaced != nil:
		return wanted.replaced(wanted.from, last), describe
	}
	return "", ""
}

// missing says what is missing of which object, and what its conditions say of it.
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

// troubles tells the conditions of an object that are not as they should be.
func troubles(object proto.Message) string {
	var told []string
	for _, condition := range badConditions(object) {
		told = append(told, fmt.Sprintf("%s: %s", condition.GetReason(), condition.GetMessage()))
	}
	slices.Sort(told)
	if len(told) == 0 {
		return ""
	}
	return " (" + strings.Join(told, "; ") + ")"
}

// badConditions are those that say something is wrong: Degraded, or another one that is not so. Progressing is neither.
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

// begin counts in the background until the function returned is called. Where that fails nothing is counted.
func (s *steps) begin(ctx context.Context, connection *grpc.ClientConn, shown *progress) func() {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	open, most := map[string]bool{}, 0
	go func() {
		defer close(ended)
		_ = s.kind.watch(ctx, connection, 0, func(told change) bool {
			switch told.kind {
			case pb.ChangeType_CHANGE_TYPE_RESET:
				clear(open)
			case pb.ChangeType_CHANGE_TYPE_PUT:
				delete(open, metaOf(told.object).GetName())
				if s.open(told.object) {
					open[metaOf(told.object).GetName()] = true
				}
			case pb.ChangeType_CHANGE_TYPE_DELETED:
				delete(open, metaOf(told.object).GetName())
			case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
				most = max(most, len(open))
				shown.count(int64(most-len(open)), int64(most))
			}
			return false
		})
	}()
	return func() { stop(); <-ended }
}
