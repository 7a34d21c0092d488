package main

import "testing"

func TestWithoutAStateDirectoryTheOneBesideTheSocketIsUsed(t *testing.T) {
	for given, want := range map[string]string{"": "/csi/volumes", "/srv/staged": "/srv/staged"} {
		s := &settings{stateDir: given}
		if got := s.staged("/csi/csi.sock"); got != want {
			t.Errorf("--state-dir %q: %s, not %s", given, got, want)
		}
	}
}
