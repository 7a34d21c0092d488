// Package logs suppresses log lines that repeat a cause, so that a wrong address or an unreachable store does not fill a disk.
package logs

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// span is the time within which a cause has one line.
	span = time.Minute
	// maxCauses bounds the causes that are remembered. The oldest one is forgotten for a further one.
	maxCauses = 1024
	// suppressedKey is the attribute with the count of the lines that were left out since the line before.
	suppressedKey = "suppressed"
)

// Repeats is a slog.Handler that passes at most one record per cause and minute to another handler. The cause of a record is its level,
// its message and its attributes, including those of the logger; digits are ignored, because ports, counts and durations differ each
// time. Only records of level warning and above are suppressed: those below are events that happen once, such as a start or an audit
// line. The next record of a cause has the attribute `suppressed` with the count of those that were left out.
type Repeats struct {
	next slog.Handler
	// with has the attributes of the logger.
	with   string
	shared *causes
}

// causes has the causes of all loggers of a process, with the time of their last line.
type causes struct {
	now   func() time.Time
	mutex sync.Mutex
	known map[string]*cause
	order []string
}

type cause struct {
	written time.Time
	leftOut int
}

// NewRepeats returns a handler before another one.
func NewRepeats(next slog.Handler) *Repeats {
	return &Repeats{next: next, shared: &causes{now: time.Now, known: map[string]*cause{}}}
}

// Enabled implements slog.Handler.
func (r *Repeats) Enabled(ctx context.Context, level slog.Level) bool {
	return r.next.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (r *Repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := r.with
	for _, attr := range attrs {
		with += describe(attr)
	}
	return &Repeats{r.next.WithAttrs(attrs), with, r.shared}
}

// WithGroup implements slog.Handler.
func (r *Repeats) WithGroup(name string) slog.Handler {
	return &Repeats{r.next.WithGroup(name), r.with + name + ".", r.shared}
}

// Handle implements slog.Handler.
func (r *Repeats) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		leftOut, admitted := r.shared.admit(r.causeOf(record))
		if !admitted {
			return nil
		}
		if leftOut > 0 {
			record = record.Clone()
			record.AddAttrs(slog.Int(suppressedKey, leftOut))
		}
	}
	return r.next.Handle(ctx, record)
}

func (r *Repeats) causeOf(record slog.Record) string {
	var key strings.Builder
	key.WriteString(record.Level.String() + " " + withoutDigits(record.Message) + " " + r.with)
	record.Attrs(func(attr slog.Attr) bool {
		key.WriteString(describe(attr))
		return true
	})
	return key.String()
}

// describe returns an attribute as a part of a cause. Digits of a text without spaces count, because they tell names apart: gw-1 and
// gw-2. Those of an address do not, because a port differs each time.
func describe(attr slog.Attr) string {
	value := attr.Value.Resolve()
	text := value.String()
	if value.Kind() != slog.KindString || strings.ContainsAny(text, " :") {
		text = withoutDigits(text)
	}
	return attr.Key + "=" + text + " "
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// admit reports whether a line of a cause is written, and how many were left out before it.
func (c *causes) admit(key string) (leftOut int, admitted bool) {
	now := c.now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.known[key]; known != nil {
		if now.Sub(known.written) < span {
			known.leftOut++
			return 0, false
		}
		leftOut, known.leftOut, known.written = known.leftOut, 0, now
		return leftOut, true
	}
	if len(c.order) >= maxCauses {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
	c.known[key] = &cause{written: now}
	c.order = append(c.order, key)
	return 0, true
}
