// Package inflight tracks the CSI calls in progress: a caller may repeat a call while the earlier one still runs.
package inflight

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Calls has the names on which calls in progress work. The zero value is empty.
type Calls struct {
	mutex sync.Mutex
	names map[string]bool
}

// Begin claims a name; the returned function releases it. Errors: ABORTED if another call has it (CSI, "Error Scheme").
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
