package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// tendEvery is the interval at which the embedded etcd is checked for refused writes because of its size.
	tendEvery = 10 * time.Second
	// compactTimeout bounds one request to compact the history.
	compactTimeout = time.Minute
)

// Tend frees space, until Close, whenever the etcd refuses writes because of its size. The refusal persists, even over restarts,
// until a client disarms the alarm, and only this process can do so. Tend must be called only once.
func (e *Embedded) Tend(log *slog.Logger) { e.maintainPeriodically(tendEvery, log) }

func (e *Embedded) maintainPeriodically(every time.Duration, log *slog.Logger) {
	e.tended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-e.stop:
				return
			case <-ticker.C:
			}
			if !e.full() {
				continue
			}
			log.Warn("the embedded etcd is full and refuses writes: its history is dropped to make room")
			if err := e.makeRoom(); err != nil {
				log.Error("the embedded etcd stays full, and refuses writes", "problem", err)
			}
		}
	})
}

// full reports whether the etcd refuses writes because of its size.
func (e *Embedded) full() bool {
	for _, alarm := range e.server.Server.Alarms() {
		if alarm.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// makeRoom drops the history, frees its space, and enables writes again if that is sufficient. A watch that is behind restarts.
// The error means that the present data alone exceeds the space.
func (e *Embedded) makeRoom() error {
	ctx, cancel := context.WithTimeout(context.Background(), compactTimeout)
	defer cancel()
	revision, err := present(ctx, e.Client)
	if err != nil {
		return err
	}
	if err := compact(ctx, e.Client, revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	if err := e.server.Server.Backend().Defrag(); err != nil { // the client's Defrag needs a server that listens
		return err
	}
	quota := e.server.Config().QuotaBackendBytes
	if size := e.server.Server.Backend().Size(); size > quota-quota/8 {
		return fmt.Errorf("%d bytes of at most %d are left of it without history: delete what is not needed, or use an external etcd "+
			"with a larger quota", size, quota)
	}
	_, err = e.Client.AlarmDisarm(context.Background(), &clientv3.AlarmMember{})
	return err
}

// KeepCompacted makes an external etcd drop the history that watches do not need, until the context ends. By default an etcd
// drops none, and refuses all writes once it is full. Several replicas may do so at the same time.
func KeepCompacted(ctx context.Context, client *clientv3.Client, log *slog.Logger) {
	keepCompacted(ctx, client, historyKept, log)
}

func keepCompacted(ctx context.Context, client *clientv3.Client, kept time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(kept)
	defer ticker.Stop()
	old := int64(0) // the present revision before the last pause
	for {
		if err := forget(ctx, client, &old); err != nil && ctx.Err() == nil {
			log.Warn("the history in etcd could not be dropped: where it is not done otherwise, etcd grows until it refuses writes",
				"problem", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func forget(ctx context.Context, client *clientv3.Client, old *int64) error {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	now, err := present(ctx, client)
	if err != nil {
		return err
	}
	before := *old
	*old = now
	if before == 0 {
		return nil
	}
	return compact(ctx, client, before)
}

func present(ctx context.Context, client *clientv3.Client) (int64, error) {
	got, err := client.Get(ctx, "sluice-probe", clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

// compact ignores that another replica has already compacted to this revision.
func compact(ctx context.Context, client *clientv3.Client, revision int64, options ...clientv3.CompactOption) error {
	if _, err := client.Compact(ctx, revision, options...); !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	return nil
}
