// Package inflight knows which CSI calls are in flight: a caller may repeat a call while the earlier one still works.
package inflight

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Calls are the names that calls in flight work on. The zero value has none.
type Calls struct {
	mutex sync.Mutex
	names map[string]bool
}

// Begin claims a name; the function it returns gives it back. ABORTED: another call has it (CSI, "Error Scheme").
func (c *Calls) Begin(name string) (func(), error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.names[name] {
		return nil, status.Errorf(codes.Aborted, "%s: another call works on it; try again", name)
	}
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name] = true
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		delete(c.names, name)
	}, nil
}
