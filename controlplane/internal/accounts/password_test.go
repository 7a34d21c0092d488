package accounts

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestAHashMatchesItsPasswordOnly(t *testing.T) {
	h := newHasher()
	stored, err := h.hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false} {
		if got, err := h.matches(t.Context(), stored, password); err != nil || got != want {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	if again, _ := h.hash(t.Context(), "correct horse"); again == stored {
		t.Error("two hashes of a password are the same: they have no salt")
	}
}

// From the tool `argon2` of the reference implementation: `echo -n password | argon2 somesalt -id -t 2 -k 1024 -p 1 -e -l 24`.
func TestAHashOfAnotherProgramIsUnderstood(t *testing.T) {
	const stored = "$argon2id$v=19$m=1024,t=2,p=1$c29tZXNhbHQ$Y+lHxfksTW5m0vcIGl8If/UJWDiMwZJA"
	if matches, err := newHasher().matches(t.Context(), stored, "password"); err != nil || !matches {
		t.Errorf("matches: %v, %v", matches, err)
	}
}

func TestADamagedHashIsAnErrorAndTakesNoMemory(t *testing.T) {
	stored := decoy
	for _, damaged := range []string{
		"", "x", strings.Replace(stored, "argon2id", "argon2i", 1), strings.Replace(stored, "m=32768", "m=4294967295", 1),
		strings.Replace(stored, "m=32768", "m=0", 1), strings.Replace(stored, "t=3", "t=4000000000", 1), strings.Replace(stored, "t=3", "t=0", 1),
		strings.Replace(stored, "p=1", "p=0", 1), strings.Replace(stored, "p=1", "p=256", 1), strings.Replace(stored, "v=19", "v=16", 1),
		stored[:len(stored)-1] + "!", stored + strings.Repeat("AAAA", 100),
	} {
		if _, err := newHasher().matches(t.Context(), damaged, "x"); err == nil {
			t.Errorf("%q is accepted", damaged)
		}
	}
}

func TestPasswordsBeyondTheLimitAreNotQueued(t *testing.T) {
	h := newHasher()
	release, begun := make(chan struct{}), make(chan struct{}, hashersAtOnce+maxWaiting)
	results := make(chan error, hashersAtOnce+maxWaiting)
	for range hashersAtOnce {
		go func() { results <- h.run(context.Background(), func() { begun <- struct{}{}; <-release }) }()
	}
	for range hashersAtOnce {
		<-begun
	}
	waiting, cancel := context.WithCancel(t.Context())
	for range maxWaiting {
		go func() { results <- h.run(waiting, func() {}) }()
	}
	for len(h.entered) < cap(h.entered) {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.run(t.Context(), func() {}); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range maxWaiting {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that waits, and whose caller has gone: %v", err)
		}
	}
	close(release)
	for range hashersAtOnce {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
