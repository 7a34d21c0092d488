// Package storetest elects tests as leader, because only a leader's term can make the writes that R1 reserves for it.
package storetest

import (
	"context"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Lead elects the test and returns its term, which ends with the test. It waits for the end of another leader's term.
func Lead(t testing.TB, s *store.Store) *store.Term {
	t.Helper()
	began, stop, ended := make(chan *store.Term, 1), make(chan struct{}), make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = s.Lead(context.Background(), t.Name(), func(ctx context.Context, term *store.Term) error {
			began <- term
			select {
			case <-stop:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	select {
	case term := <-began:
		return term
	case <-ended:
		t.Fatal(failed)
		return nil
	}
}

// During elects the test for the duration of a function.
func During(t testing.TB, s *store.Store, do func(*store.Term)) {
	t.Helper()
	lead := func(_ context.Context, term *store.Term) error { do(term); return nil }
	if err := s.Lead(context.Background(), t.Name(), lead); err != nil {
		t.Fatal(err)
	}
}

// Modify is Term.Modify for an object of the type that change expects.
func Modify[T model.Object](ctx context.Context, term *store.Term, name string, change func(T) (bool, error)) (T, error) {
	var none T
	object, err := term.Modify(ctx, none.Kind(), name, func(object model.Object) (bool, error) { return change(object.(T)) })
	if err != nil {
		return none, err
	}
	return object.(T), nil
}
