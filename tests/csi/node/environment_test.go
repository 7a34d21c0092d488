// Package node_test drives the CSI driver as kubelet and the sidecars do, inside the guest of tests/csi/node-run. The kernel's
// initiator, udev, multipathd and file systems are real, and so are the gateways.
package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	home     = "/opt/csi"
	sockets  = "/run/csi"
	state    = "/var/lib/kubelet/plugins/csi.sluice.dev/volumes"
	kubelet  = "/var/lib/kubelet/volumes"
	machine  = "/srv/host" // where the plugin sees the machine's /
	patience = 90 * time.Second
	portals  = 4 // of two gateways on two fabrics
)

var env struct {
	controller csi.ControllerClient
	node       csi.NodeClient
	nodeID     string
	process    *exec.Cmd // of the node plugin
}

func TestMain(m *testing.M) {
	if os.Getenv("SLUICE_API") == "" {
		fmt.Println("not run: tests/csi/node-run runs them in a guest")
		return
	}
	must(os.MkdirAll(sockets, 0o700))
	must(os.MkdirAll(machine, 0o700))
	must(os.WriteFile(sockets+"/chap.key", []byte("ZHJpdmVyIGtleSBvZiB0aGUgdGVzdHMgb2YgQ1NJISE=\n"), 0o600))
	controller := start("controller", exec.Command(home+"/sluice-csi", "--mode", "controller", "--endpoint", socket("controller"),
		"--server", os.Getenv("SLUICE_API"), "--tls-ca", home+"/ca.crt", "--tls-cert", home+"/csi.crt", "--tls-key", home+"/csi.key",
		"--chap-key-file", sockets+"/chap.key"))
	env.controller = csi.NewControllerClient(dial("controller"))
	startNode()
	code := m.Run()
	stop(env.process)
	stop(controller)
	if code != 0 {
		for _, log := range []string{"node", "controller"} {
			text, _ := os.ReadFile(logOf(log))
			fmt.Printf("--- log of %s\n%s\n", log, text[max(0, len(text)-12000):])
		}
	}
	os.Exit(code)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func socket(mode string) string { return "unix://" + filepath.Join(sockets, mode+".sock") }
func logOf(mode string) string  { return filepath.Join(sockets, mode+".log") }

func start(mode string, command *exec.Cmd) *exec.Cmd {
	file, err := os.OpenFile(logOf(mode), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	command.Stdout, command.Stderr = file, file
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(command.Start())
	must(file.Close())
	return command
}

func stop(command *exec.Cmd) {
	_ = command.Process.Kill()
	_ = command.Wait()
}

// startNode starts the node plugin as in a container: with its own mounts, network and IPC, and the machine's / mounted.
func startNode() {
	env.process = start("node", exec.Command("unshare", "--mount", "--propagation", "slave", "--net", "--ipc", "bash", "-c",
		`mount --rbind / "$0" && exec "$@"`, machine, home+"/sluice-csi", "--mode", "node", "--endpoint", socket("node"),
		"--node-id", "guest", "--host-root", machine, "--state-dir", state, "--log-level", "debug"))
	env.node = csi.NewNodeClient(dial("node"))
	info, err := env.node.NodeGetInfo(context.Background(), &csi.NodeGetInfoRequest{})
	must(err)
	env.nodeID = info.GetNodeId()
}

func dial(mode string) *grpc.ClientConn {
	connection, err := grpc.NewClient(socket(mode), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	must(until(func() error {
		answer, err := csi.NewIdentityClient(connection).Probe(context.Background(), &csi.ProbeRequest{})
		if err == nil && !answer.GetReady().GetValue() {
			return errors.New(mode + " is not ready")
		}
		return err
	}))
	return connection
}

func until(check func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

func say(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	output, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, output)
	}
	return strings.TrimSpace(string(output))
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// maps returns the present dm-multipath maps.
func maps(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, file := range glob(t, "/sys/block/dm-*/dm/uuid") {
		if text, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), "mpath-") {
			found = append(found, filepath.Dir(filepath.Dir(file)))
		}
	}
	return found
}

func sessions(t *testing.T) []string { return glob(t, "/sys/class/iscsi_session/*") }

// nothingLeft checks that nothing of any volume remains on the node.
func nothingLeft(t *testing.T) {
	t.Helper()
	for what, have := range map[string][]string{"maps": maps(t), "sessions": sessions(t), "disks": glob(t, "/sys/block/sd*"),
		"node records": glob(t, "/etc/iscsi/nodes/*"), "records": glob(t, state+"/*.json")} {
		if len(have) > 0 {
			t.Errorf("%s are left: %v", what, have)
		}
	}
	if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), kubelet) {
		t.Errorf("mounts are left:\n%s", table)
	}
}
