package store

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Numbers that are given once and never again (R13).
const (
	gatewayNumbers     = "gateway"
	portalGroupNumbers = "portal-group-tag"
	relativePorts      = "relative-target-port"
	// maxNumber bounds all of them: 16 bits on the wire (RFC 7143 §11.9.1 target portal group tag, SPC-5 §4.6.5).
	maxNumber = 65535
)

// ExhaustedError says that all numbers of a sort have been given.
type ExhaustedError struct{ What string }

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("all %d numbers for %s have been given, and none is ever reused", maxNumber, e.What)
}

// take gives the next count numbers, in the transaction: it fails if anyone else takes some meanwhile.
func (s *Store) take(ctx context.Context, t *tx, what string, count int) (first uint32, err error) {
	if count == 0 {
		return 0, nil
	}
	key := s.prefix + "numbers/" + what
	got, err := s.client.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	var last, revision int64
	if len(got.Kvs) > 0 {
		if last, err = strconv.ParseInt(string(got.Kvs[0].Value), 10, 64); err != nil {
			return 0, fmt.Errorf("%s in the store: %w", key, err)
		}
		revision = got.Kvs[0].ModRevision
	}
	if last+int64(count) > maxNumber {
		return 0, &ExhaustedError{what}
	}
	t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil)
	t.put(key, strconv.FormatInt(last+int64(count), 10))
	return uint32(last + 1), nil
}
