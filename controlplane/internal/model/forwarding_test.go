package model_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// A gateway may lag by the overlap: all others accept every key that it authenticates with, and it accepts theirs.
func TestAForwardingKeyIsKnownToAllBeforeItIsUsedAndAcceptedAfterwards(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	keys := model.RotateForwardingKeys(nil, now)
	used := map[string]bool{keys[0].ID: true}
	history := [][]model.ForwardingKey{keys}
	const step = 5 * time.Minute
	for range 3 * 24 * 12 {
		now = now.Add(step)
		keys = model.RotateForwardingKeys(keys, now)
		used[keys[0].ID] = true
		history = append(history, keys)
		for back := range int(model.ForwardingKeyOverlap / step) {
			if len(history) <= back+1 {
				break
			}
			old := history[len(history)-2-back]
			if !accepts(keys, old[0].ID) || !accepts(old, keys[0].ID) {
				t.Fatalf("at %v a gateway that is %v behind cannot talk to the others", now, time.Duration(back+1)*step)
			}
		}
		if len(keys) > 3 {
			t.Fatalf("%d keys are accepted", len(keys))
		}
	}
	if len(used) != 3 {
		t.Errorf("%d keys were used in three days, want 3", len(used))
	}
}

func accepts(keys []model.ForwardingKey, id string) bool {
	return slices.ContainsFunc(keys, func(k model.ForwardingKey) bool { return k.ID == id })
}

func TestARotationOnRequestKeepsEarlierKeysForTheOverlap(t *testing.T) {
	now := time.Unix(1000, 0)
	keys := model.RotateForwardingKeys(nil, now)
	first := keys[0].ID
	for range 3 {
		before := keys[0].ID
		keys = model.RotateForwardingKeysNow(keys, now)
		if keys[0].ID == before || !accepts(keys, before) || !accepts(keys, first) {
			t.Fatalf("%d keys", len(keys))
		}
		if again := model.RotateForwardingKeys(keys, now); !slices.Equal(again, keys) {
			t.Errorf("%d keys became %d before the overlap was over", len(keys), len(again))
		}
	}
	if keys = model.RotateForwardingKeysNow(keys, now); len(keys) != 4 || accepts(keys, first) {
		t.Errorf("%d keys", len(keys))
	}
	if last := model.RotateForwardingKeys(keys, now.Add(model.ForwardingKeyOverlap)); len(last) != 1 || last[0] != keys[0] {
		t.Errorf("%d keys after the overlap", len(last))
	}
}
