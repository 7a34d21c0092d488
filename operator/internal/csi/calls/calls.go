// Package calls knows which CSI calls are under way: callers may come again while an earlier call still works.
package calls

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// InProgress are the names that a call works on. The zero value has none.
type InProgress struct {
	mutex sync.Mutex
	names map[string]bool
}

// Begin claims a name; the function it returns gives it back. ABORTED: another call has it (CSI, "Error Scheme").
func (p *InProgress) Begin(name string) (func(), error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.names[name] {
		return nil, status.Errorf(codes.Aborted, "%s: another call works on it; try again", name)
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	p.names[name] = true
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.names, name)
	}, nil
}
