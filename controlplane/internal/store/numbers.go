package store

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Numbers that are assigned once and never reused (R13).
const (
	gatewayNumbers     = "gateway"
	portalGroupNumbers = "portal-group-tag"
	relativePorts      = "relative-target-port"
	// maxNumber bounds all of them: 16 bits on the wire (RFC 7143 §11.9.1 target portal group tag, SPC-5 §4.6.5).
	maxNumber = 65535
	// restoredMargin is how many numbers of each sort are skipped in a restored store: more than are assigned between a backup
	// and the loss of the store. It is a sixteenth of the range.
	restoredMargin = 4096
)

var allNumbers = []string{gatewayNumbers, portalGroupNumbers, relativePorts}

// ExhaustedError means that all numbers of a sort have been assigned.
type ExhaustedError struct{ What string }

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("all %d numbers for %s have been given, or passed over after a restore, and none is ever reused", maxNumber, e.What)
}

// assignNumbers assigns the next count numbers in the transaction, which fails if another writer assigns some meanwhile.
func (s *Store) assignNumbers(ctx context.Context, t *tx, what string, count int) (first uint32, err error) {
	if count == 0 {
		return 0, nil
	}
	last, revision, err := s.lastNumber(ctx, what)
	if err != nil {
		return 0, err
	}
	if last+int64(count) > maxNumber {
		return 0, &ExhaustedError{what}
	}
	s.putNumber(t, what, last+int64(count), revision)
	return uint32(last + 1), nil
}

func (s *Store) numberKey(what string) string { return s.prefix + "numbers/" + what }

// lastNumber returns the last assigned number of a sort, and the revision in which it was stored; 0: none was.
func (s *Store) lastNumber(ctx context.Context, what string) (last, revision int64, err error) {
	got, err := s.client.Get(ctx, s.numberKey(what))
	if err != nil {
		return 0, 0, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return 0, 0, nil
	}
	if last, err = strconv.ParseInt(string(got.Kvs[0].Value), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("%s in the store: %w", s.numberKey(what), err)
	}
	return last, got.Kvs[0].ModRevision, nil
}

func (s *Store) putNumber(t *tx, what string, last, revision int64) {
	t.compare(clientv3.Compare(clientv3.ModRevision(s.numberKey(what)), "=", revision), nil)
	t.put(s.numberKey(what), strconv.FormatInt(last, 10))
}

// skipAssigned raises all counters by restoredMargin in the transaction. Numbers that were assigned after a backup, or after an
// earlier restore of it, are not assigned again. A sort without enough numbers left is exhausted.
func (s *Store) skipAssigned(ctx context.Context, t *tx, earlier map[string]int64) error {
	for _, what := range allNumbers {
		last, revision, err := s.lastNumber(ctx, what)
		if err != nil {
			return err
		}
		s.putNumber(t, what, min(max(last, earlier[what])+restoredMargin, maxNumber), revision)
	}
	return nil
}
