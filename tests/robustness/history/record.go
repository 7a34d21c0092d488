package history

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Kind of an operation.
type Kind int

// Kinds.
const (
	Read Kind = iota
	Write
	// Swap is COMPARE AND WRITE.
	Swap
)

// Operation is one attempt of a client, as far as it may have done or shown anything.
type Operation struct {
	Client int
	Place  Place
	Kind   Kind
	// Old is what a Swap compares with, New what a Write or Swap stores, Got what a Read found.
	Old, New, Got Value
	// Swapped: the compare matched.
	Swapped bool
	// Maybe: there was no answer, it may have been executed or not, but not after Return.
	Maybe bool
	// Call and Return in nanoseconds since the recorder began; Return is Never where an effect may still come.
	Call, Return int64
	// Via are the portals it went over, for people.
	Via string
}

// Never is the end of what nobody saw end.
const Never = math.MaxInt64

func (o Operation) String() string {
	what := fmt.Sprintf("read %v", o.Got)
	switch {
	case o.Kind == Write:
		what = fmt.Sprintf("write %v", o.New)
	case o.Kind == Swap && (o.Swapped || o.Maybe):
		what = fmt.Sprintf("swap %v for %v", o.Old, o.New)
	case o.Kind == Swap:
		what = fmt.Sprintf("swap %v for %v: miscompare", o.Old, o.New)
	}
	if o.Maybe {
		what += ", no answer"
	}
	return fmt.Sprintf("%s … %s  client %d  %s  (%s)", seconds(o.Call), seconds(o.Return), o.Client, what, o.Via)
}

func seconds(at int64) string {
	if at == Never {
		return "   open   "
	}
	return fmt.Sprintf("%10.6f", time.Duration(at).Seconds())
}

// Recorder collects operations of many clients.
type Recorder struct {
	began time.Time
	mu    sync.Mutex
	all   []Operation
	bad   []string
}

// NewRecorder begins now.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// At gives a time as operations have it.
func (r *Recorder) At(t time.Time) int64 { return int64(t.Sub(r.began)) }

// Add records an operation.
func (r *Recorder) Add(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// AddBad records a block that no client has written like that.
func (r *Recorder) AddBad(place Place, via string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, fmt.Sprintf("%s  %v: %v (%s)", seconds(r.At(time.Now())), place, err, via))
}

// History is what was recorded so far, and the blocks that were torn or misplaced.
func (r *Recorder) History() ([]Operation, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Operation(nil), r.all...), append([]string(nil), r.bad...)
}
