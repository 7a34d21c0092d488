package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// observation is what one command on one path showed: the command, and its status, sense code, port group states, or the loss of the
// session.
type observation struct{ command, answer string }

func (s observation) String() string { return s.command + " " + s.answer }

const (
	lost         = "session lost"
	good         = "GOOD"
	transition   = "02/04/0a" // ASYMMETRIC ACCESS STATE TRANSITION
	unavailable  = "02/04/0c" // TARGET PORT IN UNAVAILABLE STATE
	noLogicalLUN = "05/25/00" // LOGICAL UNIT NOT SUPPORTED
)

// phase has the answers that are allowed in one part of a row of the table. A path passes its phases in order, and may skip one
// that is not the last. Unit attentions are always allowed.
type phase struct {
	// tests are answers to TEST UNIT READY, reads to READ.
	tests, reads []string
	// groups are the allowed states of the target port groups of the gateways, in their order, with commas.
	groups []string
}

func (p phase) allows(s observation) bool {
	return slices.Contains(map[string][]string{"TEST UNIT READY": p.tests, "READ": p.reads, groupsCommand: p.groups}[s.command], s.answer)
}

const groupsCommand = "REPORT TARGET PORT GROUPS"

// pathWatch sends commands to a volume on one path, one after the other, and checks the answers against its phases.
type pathWatch struct {
	name      string
	session   *initiator.Session
	lun       uint16
	groups    []uint16 // target port groups of the gateways, in their order
	phases    []phase
	mu        sync.Mutex
	at        int
	rounds    int
	counts    map[observation]int
	order     []observation // each answer when it is first given
	violation error
	begun     chan struct{} // closed after the first round without a unit attention
	last      chan struct{} // closed when the last phase is reached, or the phases are violated
}

// watchPath starts to watch, until ctx ends or the session is lost.
func watchPath(ctx context.Context, all *sync.WaitGroup, w *pathWatch) *pathWatch {
	w.counts, w.begun, w.last = map[observation]int{}, make(chan struct{}), make(chan struct{})
	all.Go(func() {
		for ctx.Err() == nil && w.round(ctx) {
		}
	})
	return w
}

// round sends each command once. It returns false if the watch is over.
func (w *pathWatch) round(ctx context.Context) bool {
	attentions := false
	for name, command := range map[string]initiator.Command{
		"TEST UNIT READY": initiator.TestUnitReady(w.lun),
		"READ":            initiator.Read(w.lun, 0, 1, sectorSize),
		groupsCommand:     initiator.ReportTargetPortGroups(w.lun),
	} {
		response, err := w.session.Do(ctx, command)
		if ctx.Err() != nil {
			return false
		}
		answer := w.shown(name, response)
		if err != nil {
			answer = lost
		}
		if !w.note(observation{name, answer}) || err != nil {
			return false
		}
		attentions = attentions || isAttention(answer)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds++
	if !attentions {
		closeOnce(w.begun)
	}
	return true
}

// more returns after this number of further rounds, or when the path has ended.
func (w *pathWatch) more(ctx context.Context, rounds int) error {
	done := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.rounds
	}
	end := done() + rounds
	return netns.Until(ctx, func() error {
		if at := done(); at < end && w.session.Lost() == nil {
			return fmt.Errorf("%s: %d rounds, not %d", w.name, at, end)
		}
		return nil
	})
}

// shows returns once a command was given an answer.
func (w *pathWatch) shows(ctx context.Context, command, answer string) error {
	return netns.Until(ctx, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.counts[observation{command, answer}] == 0 && w.violation == nil {
			return fmt.Errorf("%s: %s was not answered with %s", w.name, command, answer)
		}
		return nil
	})
}

func isAttention(answer string) bool { return strings.HasPrefix(answer, "06/") }

// closeOnce closes a channel that one goroutine at a time closes.
func closeOnce(channel chan struct{}) {
	select {
	case <-channel:
	default:
		close(channel)
	}
}

func (w *pathWatch) shown(command string, response initiator.Response) string {
	switch {
	case response.Status == initiator.StatusCheckCondition:
		return response.Sense.String()
	case response.Status != initiator.StatusGood:
		return response.String()
	case command != groupsCommand:
		return good
	}
	groups, err := initiator.ParsePortGroups(response.Data)
	if err != nil {
		return err.Error()
	}
	state := func(group uint16) string {
		if state, known := groups[group]; known {
			return state.String()
		}
		return "none"
	}
	var all []string
	for _, group := range w.groups {
		all = append(all, state(group))
	}
	return strings.Join(all, ",")
}

// note advances to the first phase that allows what was seen. It returns false if none does.
func (w *pathWatch) note(s observation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[s]++; w.counts[s] == 1 {
		w.order = append(w.order, s)
	}
	if isAttention(s.answer) {
		return true
	}
	for next := w.at; next < len(w.phases); next++ {
		if w.phases[next].allows(s) {
			if w.at = next; next == len(w.phases)-1 {
				closeOnce(w.last)
			}
			return true
		}
	}
	w.violation = fmt.Errorf("%s: %v is not allowed in phase %d or later", w.name, s, w.at)
	closeOnce(w.last)
	return false
}

// in fails unless the path is in this phase.
func (w *pathWatch) in(at int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at != at {
		return fmt.Errorf("%s is in phase %d, not %d", w.name, w.at, at)
	}
	return nil
}

// wait returns once the path is in its last phase.
func (w *pathWatch) wait(ctx context.Context) error {
	select {
	case <-w.last:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == nil && w.at < len(w.phases)-1 {
		return fmt.Errorf("%s stays in phase %d: %w", w.name, w.at, context.Cause(ctx))
	}
	return w.violation
}

// verdict returns the violation, if any, and describes what was seen.
func (w *pathWatch) verdict() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%s, phase %d of %d:", w.name, w.at+1, len(w.phases))
	for _, s := range w.order {
		fmt.Fprintf(&text, " [%v] × %d", s, w.counts[s])
	}
	return text.String(), w.violation
}

// watched runs `act` while both paths are watched, and returns when both are in their last phase.
func watched(ctx context.Context, t *testing.T, act func(context.Context) error, paths ...*pathWatch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for _, w := range paths {
		watchPath(watching, &all, w)
	}
	var err error
	for _, w := range paths {
		select {
		case <-w.begun:
		case <-w.last:
		case <-ctx.Done():
		}
		err = errors.Join(err, w.in(0))
	}
	err = errors.Join(err, act(ctx))
	for _, w := range paths {
		err = errors.Join(err, w.wait(ctx))
	}
	stop()
	all.Wait()
	for _, w := range paths {
		text, violation := w.verdict()
		err = errors.Join(err, violation)
		t.Log(text)
	}
	if err != nil {
		t.Error(err)
	}
}
