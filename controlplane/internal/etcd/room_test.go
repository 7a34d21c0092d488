package etcd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestAnEmbeddedEtcdThatIsFullOfHistoryTakesWritesAgainByItself(t *testing.T) {
	e, err := start(t.Context(), t.TempDir(), zap.NewNop(), 16<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.maintainPeriodically(10*time.Millisecond, slog.New(slog.DiscardHandler))
	value := strings.Repeat("x", 1<<20)
	refused, taken := false, false
	for range 1000 {
		_, err := e.Client.Put(t.Context(), "key", value)
		if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Fatal(err)
		}
		if refused, taken = refused || err != nil, refused && err == nil; taken {
			break
		}
	}
	for !taken {
		if !refused {
			t.Fatal("it never was full")
		}
		if t.Context().Err() != nil {
			t.Fatal("it refuses writes without end")
		}
		_, err = e.Client.Put(t.Context(), "key", value)
		taken = err == nil
	}
}

func TestAnExternalEtcdForgetsWhatIsOld(t *testing.T) {
	e, err := start(t.Context(), t.TempDir(), zap.NewNop(), quotaBytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	first, err := e.Client.Put(t.Context(), "key", "1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		keepCompacted(ctx, e.Client, 10*time.Millisecond, slog.New(slog.DiscardHandler))
	}()
	for err = nil; !errors.Is(err, rpctypes.ErrCompacted); {
		if _, err := e.Client.Put(t.Context(), "key", "2"); err != nil {
			t.Fatal(err)
		}
		_, err = e.Client.Get(t.Context(), "key", clientv3.WithRev(first.Header.Revision))
	}
	stop()
	<-done
}

func TestAFullEtcdIsReportedWithItsSizeAndLimit(t *testing.T) {
	const quota = 16 << 20
	e, err := start(t.Context(), t.TempDir(), zap.NewNop(), quota, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	space, err := SpaceOf(t.Context(), e.Client)
	if err != nil || space.Full || space.Quota != quota || space.Used <= 0 || space.Used >= quota || space.Members != 1 {
		t.Fatalf("%+v, %v", space, err)
	}
	for err == nil {
		_, err = e.Client.Put(t.Context(), "key", strings.Repeat("x", 1<<20))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	if space, err = SpaceOf(t.Context(), e.Client); err != nil || !space.Full {
		t.Errorf("%+v, %v", space, err)
	}
}
