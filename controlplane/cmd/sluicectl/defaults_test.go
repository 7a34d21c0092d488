package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Without an optional flag, sluicectl makes the same object as the control plane makes from a message without the field.
func TestFlagsThatAreLeftOutMakeWhatTheirHelpSays(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	ctx := t.Context()
	want := func(what string, got, wanted any, err error) {
		t.Helper()
		if err != nil || got != wanted {
			t.Errorf("%s is %v, not %v (%v)", what, got, wanted, err)
		}
	}
	fabric, err := l.Fabrics.Get(ctx, "red")
	want("--switch", fmt.Sprint(fabric.Spec.Switches), "[red]", err)
	pool, err := l.GatewayPools.Get(ctx, "default")
	want("--max-sessions of a gateway pool", pool.Spec.MaxSessionsPerGateway, int32(model.DefaultGatewaySession), err)
	gateway, err := l.Gateways.Get(ctx, "gw-1")
	want("--weight", gateway.Spec.Weight, int32(model.DefaultWeight), err)
	want("--pool", gateway.Spec.GatewayPool, "default", err)
	storage, err := l.StoragePools.Get(ctx, "nvme")
	want("--warn-percent", storage.Spec.WarnPercent, int32(model.DefaultWarnPercent), err)
	want("--gateway-pool of a pool", len(storage.Spec.GatewayPools), 0, err)
	volume, err := l.Volumes.Get(ctx, "orders")
	want("--iops, --bytes-per-second and bursts", volume.Spec.QoS, model.QoS{}, err)
	want("--block-size", volume.Spec.BlockSize, int32(512), err)
	want("--write-cache", volume.Spec.WriteCache, false, err)
	want("--retain and --trash", volume.Spec.ReclaimPolicy, model.ReclaimDelete, err)
	want("--from-snapshot and its neighbours", volume.Spec.Source, model.VolumeSource{}, err)
	target, err := l.Targets.Get(ctx, "shop")
	want("--iqn", target.Spec.IQN, "iqn.2026-11.dev.sluice:shop", err)
	want("--paths", target.Spec.Paths, int32(model.DefaultPaths), err)
	want("--gateway-pool of a target", target.Spec.GatewayPool, "default", err)
	host, err := l.Hosts.Get(ctx, "web")
	want("--max-sessions of a host", host.Spec.MaxSessions, int32(model.DefaultMaxSessions), err)
	want("--chap-user", host.Spec.ChapUsername("iqn.2026-11.org.example:web"), "iqn.2026-11.org.example:web", err)

	secrets := [2]string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other")}
	for i, file := range secrets {
		if err := os.WriteFile(file, fmt.Appendf(nil, "a secret of its own %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.must("host", "create", "mutual", "--initiator", "iqn.2026-11.org.example:m", "--chap-secret-file", secrets[0],
		"--mutual-chap-secret-file", secrets[1])
	host, err = l.Hosts.Get(ctx, "mutual")
	want("--mutual-chap-user", host.Spec.MutualChapUsername(target.Spec.IQN), target.Spec.IQN, err)
}

func TestAMoveWithoutAGatewayLeavesTheChoiceToTheLeader(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	modify(l, "shop", func(target *model.Target) { target.Status.PathSet = []uint32{1, 2} })
	modify(l, "orders", func(v *model.Volume) {
		v.Status.CapacityBytes = v.Spec.SizeBytes
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1, Incarnation: "one"}}
	})
	l.must("volume", "move", "orders")
	moved, err := l.Volumes.Get(t.Context(), "orders")
	if err != nil || moved.Status.MoveRequest == nil || moved.Status.MoveRequest.Gateway != 0 {
		t.Errorf("%+v, %v", moved.Status.MoveRequest, err)
	}
}

func TestTheNumberOfEventsIsLimitedAsTheHelpSays(t *testing.T) {
	l := start(t)
	log := store.NewEventLog(l.Store)
	for i := range 60 {
		if err := log.Record(t.Context(), model.Event{Object: model.KindVolume, Name: fmt.Sprintf("v-%d.", i), Reason: "Moved"}); err != nil {
			t.Fatal(err)
		}
	}
	for arguments, want := range map[string]int{"events": 50, "events -n 0": 60, "status": 5, "status -n 0": 0, "status -n 60": 60} {
		out := l.must(strings.Fields(arguments)...)
		if got := strings.Count(out, "v-"); got != want {
			t.Errorf("%s shows %d events, not %d", arguments, got, want)
		}
	}
}

func TestADumpWithoutANameIsInTheWorkingDirectory(t *testing.T) {
	l := start(t)
	t.Chdir(t.TempDir())
	l.must("dump")
	if all, err := filepath.Glob("sluice-dump-*.tar.gz"); err != nil || len(all) != 1 {
		t.Errorf("%q, %v", all, err)
	}
}

func TestTheTimeLimitIsThatOfTheHelp(t *testing.T) {
	for arguments, want := range map[string]time.Duration{
		"": 30 * time.Second, "--wait": 10 * time.Minute, "--wait --timeout 7s": 7 * time.Second, "--timeout 7s": 7 * time.Second,
		"--prune": 10 * time.Minute,
	} {
		g, command, wait := &globals{}, &cobra.Command{Use: "move"}, false
		g.add(command)
		addWait(command, &wait, "")
		(&pruning{}).addFlags(command)
		err := command.ParseFlags(strings.Fields(arguments))
		if got := g.limit(command); err != nil || got != want {
			t.Errorf("%q: %s, not %s (%v)", arguments, got, want, err)
		}
	}
}
