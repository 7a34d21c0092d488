package main

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/store"
)

const unauthenticated = "advice HostUnauthenticated: "

func TestAWatchedDoctorShowsEachChangeAlsoAfterAReplicaWasRestarted(t *testing.T) {
	l := start(t)
	create := func(name string) {
		l.must("host", "create", name, "--initiator", "iqn.2026-11.org.example:"+name, "--allow-unauthenticated")
	}
	create("a")
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "doctor", "--watch")
	r.out.until(t, unauthenticated+"host a")
	r.out.until(t, "advice OneReplica")
	create("b")
	r.out.until(t, " changed "+unauthenticated+"2 hosts (a, b)")
	l.stop()
	r.err.until(t, "not reachable")
	for _, name := range []string{"a", "b"} {
		if _, err := l.Hosts.Delete(t.Context(), name, store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.serve()
	r.out.until(t, " ended HostUnauthenticated: 2 hosts (a, b)")
	create("c")
	r.out.until(t, " new "+unauthenticated+"host c")
	interrupt()
	if err := <-r.ended; err != nil {
		t.Errorf("an interrupt is no error: %v", err)
	}
	if out := r.out.String(); strings.Count(out, "OneReplica:") != 1 {
		t.Errorf("a finding that did not change is shown again:\n%s", out)
	}
}
