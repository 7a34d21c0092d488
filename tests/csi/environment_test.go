// Package csi_test drives the CSI driver as Kubernetes' sidecars do, over its socket, with a real control plane and real
// gateways.
package csi_test

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

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/csi/plugin"
	"sluice.dev/sluice/tests/netns"
)

const (
	gateways = 2
	patience = 60 * time.Second
	poolSize = "1G"
)

// env has the parts that all tests use: a cluster, and both plugins.
var env struct {
	*cluster.Cluster
	controller csi.ControllerClient
	identity   csi.IdentityClient
	node       csi.NodeClient
	// sockets of the plugins.
	controllerSocket, nodeSocket string
	// addresses of their metrics.
	controllerMetrics, nodeMetrics string
	// log of the controller plugin.
	log string
}

func TestMain(m *testing.M) {
	if err := netns.Isolate(); err != nil {
		fmt.Println("SKIP csi:", err)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "sluice-csi.")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	end, err := start(ctx, scratch)
	defer end()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		text, _ := os.ReadFile(env.log)
		fmt.Printf("--- the controller plugin's log (its end)\n%s\n", text[max(0, len(text)-8000):])
		fmt.Println(env.Logs(15))
	}
	return code
}

// start starts everything, and returns the function that ends it, which must be called even after an error.
func start(ctx context.Context, scratch string) (end func(), err error) {
	var ends []func() error
	end = func() {
		for i := range ends {
			if err := ends[len(ends)-1-i](); err != nil {
				fmt.Println("end:", err)
			}
		}
	}
	pool, err := xfs(scratch)
	if err != nil {
		return end, err
	}
	ends = append(ends, func() error { return shell("umount " + pool) })
	programs, err := filepath.Abs("../../build/bin")
	if err != nil {
		return end, err
	}
	env.Cluster, err = cluster.Start(ctx, cluster.Options{Programs: programs, Directory: scratch, Pool: pool,
		Gateways: gateways, Volumes: 1, Replicas: 1})
	if err != nil {
		return end, err
	}
	ends = append(ends, env.Close)
	if err := env.WaitReady(ctx); err != nil {
		return end, err
	}
	env.controllerSocket, env.nodeSocket = filepath.Join(scratch, "controller.sock"), filepath.Join(scratch, "node.sock")
	env.log = filepath.Join(scratch, "csi-controller.log")
	env.controllerMetrics, env.nodeMetrics = "127.0.0.1:7466", "127.0.0.1:7467"
	if err := os.WriteFile(filepath.Join(scratch, "chap.key"), []byte(driverKey+"\n"), 0o600); err != nil {
		return end, err
	}
	for _, p := range []*netns.Process{
		plugin.Process(scratch, programs, "controller", append(plugin.ControllerFlags(env.Cluster, "csi"), "--metrics", env.controllerMetrics)...),
		plugin.Process(scratch, programs, "node", "--metrics", env.nodeMetrics, "--node-id", "node-1", "--host-root", "/", "--state-dir", filepath.Join(scratch, "staged")),
	} {
		if err := p.Start(); err != nil {
			return end, err
		}
		ends = append(ends, p.Kill)
	}
	controller, err := plugin.Dial(ctx, env.controllerSocket)
	if err != nil {
		return end, err
	}
	node, err := plugin.Dial(ctx, env.nodeSocket)
	if err != nil {
		return end, err
	}
	ends = append(ends, controller.Close, node.Close)
	env.controller, env.identity, env.node = csi.NewControllerClient(controller), csi.NewIdentityClient(controller), csi.NewNodeClient(node)
	return end, nil
}

// xfs mounts a file system that shares blocks between files, and writes the name that iscsid would use, for this process tree
// only.
func xfs(scratch string) (string, error) {
	image, directory := filepath.Join(scratch, "disk"), filepath.Join(scratch, "pool")
	etc := filepath.Join(scratch, "iscsi")
	if err := errors.Join(os.Mkdir(directory, 0o700), os.Mkdir(etc, 0o700)); err != nil {
		return "", err
	}
	name := []byte("InitiatorName=" + nodeInitiator + "\n")
	if err := os.WriteFile(filepath.Join(etc, "initiatorname.iscsi"), name, 0o600); err != nil {
		return "", err
	}
	return directory, errors.Join(overlaid("/etc/iscsi", etc), shell("truncate -s "+poolSize+" "+image),
		shell("mkfs.xfs -q -m reflink=1 "+image), shell("mount -o loop "+image+" "+directory))
}

// overlaid mounts a directory over one of the machine's, which may not exist.
func overlaid(path, with string) error {
	if _, err := os.Stat(path); err == nil {
		return shell("mount --bind " + with + " " + path)
	}
	parent := filepath.Dir(path)
	upper, work := with+".upper", with+".work"
	return errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.Rename(with, filepath.Join(upper, filepath.Base(path))),
		shell(fmt.Sprintf("mount -t overlay overlay -o lowerdir=%s,upperdir=%s,workdir=%s %s", parent, upper, work, parent)))
}

func shell(line string) error {
	words := strings.Fields(line)
	if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, output)
	}
	return nil
}

// nodeInitiator is the name of the node to which volumes are published.
var nodeInitiator = initiatorOf("node-1")
