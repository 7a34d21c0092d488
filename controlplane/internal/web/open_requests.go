package web

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/store"
)

// checkEvery bounds the time for which a stream continues after its login has ended: by logout at another replica, or by a change of
// the account.
const checkEvery = 5 * time.Second

// openRequests are the requests in progress, by login. Its methods are safe for concurrent use.
type openRequests struct {
	mutex sync.Mutex
	of    map[string]*loginRequests
	next  uint64
}

type loginRequests struct {
	login store.Login
	end   map[uint64]context.CancelFunc
}

func newOpenRequests() *openRequests { return &openRequests{of: map[string]*loginRequests{}} }

func keyOf(login store.Login) string { return hex.EncodeToString(login.Hash) }

// add returns the context of a request, which ends with the login. Call remove when the request has ended.
func (o *openRequests) add(ctx context.Context, login store.Login) (_ context.Context, remove func()) {
	ctx, cancel := context.WithDeadline(ctx, login.Expires)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	key := keyOf(login)
	if o.of[key] == nil {
		o.of[key] = &loginRequests{login, map[uint64]context.CancelFunc{}}
	}
	number := o.next
	o.next++
	o.of[key].end[number] = cancel
	return ctx, func() {
		cancel()
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if of := o.of[key]; of != nil {
			if delete(of.end, number); len(of.end) == 0 {
				delete(o.of, key)
			}
		}
	}
}

// end cancels the requests of a login.
func (o *openRequests) end(login store.Login) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if of := o.of[keyOf(login)]; of != nil {
		for _, cancel := range of.end {
			cancel()
		}
	}
}

func (o *openRequests) logins() []store.Login {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	all := make([]store.Login, 0, len(o.of))
	for _, of := range o.of {
		all = append(all, of.login)
	}
	return all
}

func (o *openRequests) run(ctx context.Context, kept *store.Store, log *slog.Logger) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			o.check(ctx, kept, log)
		}
	}
}

// check ends the requests of logins that have ended. While the store does not answer, requests continue until their login's time ends.
func (o *openRequests) check(ctx context.Context, kept *store.Store, log *slog.Logger) {
	for _, login := range o.logins() {
		_, valid, err := kept.FindLogin(ctx, login.Provider, login.Name, login.Hash)
		if err != nil {
			log.Debug("logins could not be checked", "problem", err)
			return
		}
		if !valid {
			o.end(login)
		}
	}
}
