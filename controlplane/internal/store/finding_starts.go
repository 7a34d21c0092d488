package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) findingStartPrefix() string { return s.prefix + "findings/" }

// findingStartKey escapes the name, because the name of a certificate can contain slashes.
func (s *Store) findingStartKey(f model.FindingStart) string {
	return fmt.Sprintf("%s%s/%s/%s", s.findingStartPrefix(), f.ID, f.Object, url.PathEscape(f.Name))
}

func decodeFindingStart(key string, value []byte, _ int64) (model.FindingStart, error) {
	var start model.FindingStart
	if err := json.Unmarshal(value, &start); err != nil {
		return start, fmt.Errorf("%s in the store: %w", key, err)
	}
	return start, nil
}

// BeginFinding records the start of a finding. It reports whether this call did: of several replicas that try, one does.
func (s *Store) BeginFinding(ctx context.Context, start model.FindingStart) (bool, error) {
	value, err := json.Marshal(start)
	if err != nil {
		return false, err
	}
	key := s.findingStartKey(start)
	var t tx
	t.compare(missing(key), nil)
	t.put(key, string(value))
	return s.didCommit(ctx, &t)
}

// EndFinding removes the record of a finding's start. It reports whether this call did.
func (s *Store) EndFinding(ctx context.Context, start model.FindingStart) (bool, error) {
	key := s.findingStartKey(start)
	var t tx
	t.compare(present(key), nil)
	t.delete(key)
	return s.didCommit(ctx, &t)
}

// didCommit reports whether the comparisons of a transaction held.
func (s *Store) didCommit(ctx context.Context, t *tx) (bool, error) {
	_, err := s.commit(ctx, t)
	if errors.Is(err, errLost) {
		return false, nil
	}
	return err == nil, err
}

// WatchFindingStarts reports every change of the records, as Collection.Watch does for objects.
func (s *Store) WatchFindingStarts(ctx context.Context, after int64, tell func(RecordChange[model.FindingStart]) error) error {
	return records[model.FindingStart]{s, s.findingStartPrefix(), decodeFindingStart}.watch(ctx, after, tell)
}
