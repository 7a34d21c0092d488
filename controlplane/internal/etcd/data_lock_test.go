package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

func TestADataDirectoryInUseIsRefusedAtOnceAndNamesTheProcess(t *testing.T) {
	directory := t.TempDir()
	first, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	_, err = etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	var used *etcd.DirectoryInUseError
	if !errors.As(err, &used) || used.PID != os.Getpid() || used.Directory != directory {
		t.Fatalf("got %v", err)
	}
	first.Close()
	again, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatalf("after the first one was closed: %v", err)
	}
	again.Close()
}

// A release before the lock file locks only etcd's database.
func TestADataDirectoryThatAnOlderReleaseUsesIsRefusedAtOnce(t *testing.T) {
	directory := t.TempDir()
	first, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	database, err := os.Open(filepath.Join(directory, etcd.Directory, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	if err := syscall.Flock(int(database.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	var used *etcd.DirectoryInUseError
	if !errors.As(err, &used) || used.PID != 0 {
		t.Fatalf("got %v", err)
	}
}

func TestAStartEndsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etcd.StartEmbedded(ctx, t.TempDir(), zap.NewNop()); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
