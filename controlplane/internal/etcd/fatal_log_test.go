package etcd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

func TestAFailureOfEtcdEndsTheProcessAndNamesCauseAndRemedy(t *testing.T) {
	var code int
	exit = func(with int) { code = with }
	defer func() { exit = osExit }()
	for text, want := range map[string]struct {
		say  func(*zap.Logger)
		word string
	}{
		"a full file system": {func(l *zap.Logger) {
			l.Fatal("failed to save", zap.Error(fmt.Errorf("write wal: %w", syscall.ENOSPC)))
		}, "free space on it"},
		"a full file system as text": {func(l *zap.Logger) { l.Panic("tx.Commit: no space left on device") }, "free space on it"},
		"a read-only file system":    {func(l *zap.Logger) { l.Fatal("failed", zap.Error(syscall.EROFS)) }, "read-only"},
		"missing rights":             {func(l *zap.Logger) { l.Fatal("failed", zap.Error(syscall.EACCES)) }, "chown"},
		"a removed member":           {func(l *zap.Logger) { l.Panic("failed to find local ID in cluster members") }, "was removed from the cluster"},
		"anything else":              {func(l *zap.Logger) { l.Fatal("something") }, "restore the newest backup"},
	} {
		var out bytes.Buffer
		code = 0
		want.say(FatalLog("/srv/data", slog.New(slog.NewTextHandler(&out, nil))).With(zap.String("member", "m")))
		if code != exitFailed || !strings.Contains(out.String(), want.word) || !strings.Contains(out.String(), "/srv/data") {
			t.Errorf("%s: code %d, %s", text, code, out.String())
		}
	}
}

func TestAnErrorOfEtcdThatIsNotFatalIsNotLogged(t *testing.T) {
	var out bytes.Buffer
	FatalLog("/srv/data", slog.New(slog.NewTextHandler(&out, nil))).Error("it goes on")
	if out.Len() > 0 {
		t.Error(out.String())
	}
}
