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

// Operation is one attempt of a client that may have had or observed an effect.
type Operation struct {
	Client int
	Place  Place
	Kind   Kind
	// Old is the compared value of a Swap, New the stored value of a Write or Swap, Got the value that a Read returned.
	Old, New, Got Value
	// Swapped: the compare matched.
	Swapped bool
	// Maybe: there was no answer. It may have been executed or not, but not after Return.
	Maybe bool
	// Call and Return in nanoseconds since the start of the recorder; Return is Never if an effect is still possible.
	Call, Return int64
	// Via has the portals that it used, for messages.
	Via string
}

// Never is the end of an operation whose end was not observed.
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

// NewRecorder returns a recorder that starts now.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// At converts a time to that of operations.
func (r *Recorder) At(t time.Time) int64 { return int64(t.Sub(r.began)) }

// Add records an operation.
func (r *Recorder) Add(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// AddBad records a block that no client has written in that form.
func (r *Recorder) AddBad(place Place, via string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, fmt.Sprintf("%s  %v: %v (%s)", seconds(r.At(time.Now())), place, err, via))
}

// History returns the recorded operations, and the blocks that were torn or misplaced.
func (r *Recorder) History() ([]Operation, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Operation(nil), r.all...), append([]string(nil), r.bad...)
}
