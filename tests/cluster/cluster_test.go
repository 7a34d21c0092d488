package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

func TestMain(m *testing.M) {
	if err := netns.Isolate(); err != nil {
		fmt.Println("SKIP cluster:", err)
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T, options cluster.Options) (*cluster.Cluster, context.Context) {
	t.Helper()
	options.Programs, _ = filepath.Abs("../../build/bin") // the working directory exists
	if gateway := os.Getenv("SLUICE_GATEWAY"); gateway != "" {
		options.Gateway = gateway // a safety mutation (gateway/src/base/safety_mutation.h)
	}
	options.Etcd = filepath.Join(filepath.Dir(options.Programs), "tools", "etcd")
	for _, program := range []string{options.Etcd, filepath.Join(options.Programs, "sluice-controlplane")} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("not built: ", err)
		}
	}
	options.Directory = t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	c, err := cluster.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(30))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, ctx
}

func TestOneReplicaWithItsEtcdInsideKnowsAllObjects(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 3, Replicas: 1})
	shown, err := c.Control(ctx, "volume", "list", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if !strings.Contains(string(shown), cluster.VolumeName(i)) {
			t.Errorf("no %s in %s", cluster.VolumeName(i), shown)
		}
	}
}

func TestReplicasAnswerThoughAMemberOfEtcdAndAReplicaAreLost(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 2})
	if err := errors.Join(c.Members[2].Kill(), c.Replicas[1].Kill()); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		_, err := c.Control(ctx, "volume", "get", cluster.VolumeName(0))
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestACallGoesToTheReplicaThatIsLeft(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 2})
	if err := c.Replicas[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error { return c.Drain(ctx, 0) }); err != nil {
		t.Error(err)
	}
}

func TestGatewaysBecomeReadyAndVolumesOwnedThenMoved(t *testing.T) {
	help, _ := exec.Command("../../build/bin/sluice-gateway", "--help").CombinedOutput()
	if !strings.Contains(string(help), "--control-plane") {
		t.Skip("this gateway knows no control plane")
	}
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 3, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	next := (owner + 1) % 3
	if err := c.Move(ctx, 0, next); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		now, err := c.Owner(ctx, 0)
		if err == nil && now != next {
			err = fmt.Errorf("%s owns it", cluster.GatewayName(now))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// No other gateway can own the volume. A client that waits for the move gets the reason long before the limit.
func TestWaitingForAMoveThatComesToNothingEndsAndSaysWhy(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Gateways[1-owner].Kill(); err != nil {
		t.Fatal(err)
	}
	_, err = c.Control(ctx, "volume", "move", cluster.VolumeName(0), "--wait")
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 5 || !strings.Contains(err.Error(), "it does not move: ") {
		t.Fatalf("exit code 5 was wanted: %v", err)
	}
	t.Log(err)
	shown, err := c.Control(ctx, "volume", "describe", cluster.VolumeName(0))
	if err != nil || !strings.Contains(string(shown), "MoveRefused") && !strings.Contains(string(shown), "MoveFailed") {
		t.Fatalf("the volume does not show it: %v\n%s", err, shown)
	}
}
