package logs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

type logTest struct {
	*slog.Logger
	out     bytes.Buffer
	handler *Repeats
	now     time.Time
}

func newLogTest() *logTest {
	l := &logTest{now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	l.handler = NewRepeats(slog.NewTextHandler(&l.out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	l.handler.shared.now = func() time.Time { return l.now }
	l.Logger = slog.New(l.handler)
	return l
}

func (l *logTest) lines() []string {
	lines := strings.Split(strings.TrimSpace(l.out.String()), "\n")
	l.out.Reset()
	return lines
}

func TestACauseHasOneLinePerMinuteWithTheCountOfSuppressedLines(t *testing.T) {
	l := newLogTest()
	for i := range 600 { // five per second for two minutes
		l.With("gateway", "gw-1").Warn("not reached", "problem", fmt.Errorf("dial 192.0.2.7:%d: refused", 30000+i))
		l.now = l.now.Add(200 * time.Millisecond)
	}
	l.With("gateway", "gw-1").Warn("not reached", "problem", errors.New("dial 192.0.2.7:1: refused"))
	lines := l.lines()
	if len(lines) != 3 || !strings.HasSuffix(lines[0], `refused"`) || !strings.HasSuffix(lines[1], " suppressed=299") ||
		!strings.HasSuffix(lines[2], " suppressed=299") {
		t.Errorf("%q", lines)
	}
}

func TestDifferentCausesDoNotSuppressEachOther(t *testing.T) {
	l := newLogTest()
	for range 2 {
		l.With("gateway", "gw-1").Warn("not reached", "problem", "refused")
		l.With("gateway", "gw-2").Warn("not reached", "problem", "refused")
		l.With("gateway", "gw-1").Warn("not reached", "problem", "timed out")
		l.Error("not reached", "gateway", "gw-1", "problem", "refused")
	}
	if lines := l.lines(); len(lines) != 4 {
		t.Errorf("%q", lines)
	}
}

func TestEventsAreNeverSuppressed(t *testing.T) {
	l := newLogTest()
	for range 5 {
		l.Info("event", "kind", "Volume", "name", "v")
	}
	if lines := l.lines(); len(lines) != 5 {
		t.Errorf("%q", lines)
	}
}

func TestTheCausesThatAreRememberedAreBounded(t *testing.T) {
	l := newLogTest()
	for i := range 3 * maxCauses {
		l.Warn("odd", "name", fmt.Sprintf("v-%d", i))
	}
	if n := len(l.handler.shared.known); n != maxCauses || len(l.handler.shared.order) != maxCauses {
		t.Errorf("%d causes", n)
	}
	if lines := l.lines(); len(lines) != 3*maxCauses {
		t.Errorf("%d lines", len(lines))
	}
}
