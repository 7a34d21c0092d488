package store_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// heartbeatStored returns the number of sessions in the stored load of gateway 1, which identifies the heartbeat.
func heartbeatStored(f *fixture) (sessions uint32) {
	f.t.Helper()
	_ = f.WatchObserved(f.t.Context(), 0, func(c store.RecordChange[model.Observed]) error {
		if c.Type == store.Bookmark {
			return errEnough
		}
		if c.Record.Load != nil {
			sessions = c.Record.Load.Sessions
		}
		return nil
	})
	return sessions
}

func TestLoadsAreStoredNowAndThenAndEarlyWhereAVolumeComesIntoUse(t *testing.T) {
	f := withGateways(t, 1)
	a := connect(f, "gw-1", "one")
	beat := uint32(0)
	for _, step := range []struct {
		what     string
		after    time.Duration
		commands uint64
		bytes    [2]uint64
		stored   bool
	}{
		{"the first", 0, 0, [2]uint64{0, 0}, true},
		{"nothing happens", time.Second, 0, [2]uint64{0, 0}, false},
		{"a host looks whether its path works", time.Second, 1, [2]uint64{0, 0}, false},
		{"a volume is read", time.Second, 2, [2]uint64{512, 0}, true},
		{"it is read on", store.UseInterval, 3, [2]uint64{1024, 0}, false},
		{"another one is read", time.Second, 4, [2]uint64{1024, 512}, true},
		{"loads come now and then", model.LoadsInterval, 4, [2]uint64{1024, 512}, true},
		{"the first one has rested for long", model.UsedFor, 4, [2]uint64{1024, 512}, true},
		{"and is read again, just after loads were stored", time.Second, 5, [2]uint64{2048, 512}, false},
		{"that is stored as soon as may be", store.UseInterval - time.Second, 5, [2]uint64{2048, 512}, true},
	} {
		f.clock.advance(step.after)
		before := heartbeatStored(f)
		beat++
		report := model.LoadReport{Sessions: beat}
		for i, bytes := range step.bytes {
			report.Volumes = append(report.Volumes, model.VolumeLoad{UID: string(rune('a' + i)), Commands: step.commands, Bytes: bytes})
		}
		if err := a.ObserveLoads(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		want := before
		if step.stored {
			want = beat
		}
		if got := heartbeatStored(f); got != want {
			t.Errorf("%s: heartbeat %d is stored, wanted %d of %d", step.what, got, want, beat)
		}
	}
}
