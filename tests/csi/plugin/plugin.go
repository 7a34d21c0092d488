// Package plugin starts the programs of the CSI driver in a test's cluster, and connects to them as Kubernetes' sidecars do.
package plugin

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// ControllerFlags returns the flags of a controller plugin whose certificate has a role: csi, or operator as in releases before that
// role. chap.key is in the cluster's folder.
func ControllerFlags(of *cluster.Cluster, role string) []string {
	certs := filepath.Join(of.Directory, "certs")
	return []string{"--server", of.Network.Address(cluster.ControlNode, cluster.Internal) + ":7460",
		"--tls-ca", filepath.Join(certs, "ca.crt"), "--tls-cert", filepath.Join(certs, role+".crt"),
		"--tls-key", filepath.Join(certs, role+".key"), "--chap-key-file", filepath.Join(of.Directory, "chap.key")}
}

// Process returns the process of a plugin, mode controller or node. Its socket MODE.sock and its log csi-MODE.log are in the folder.
func Process(folder, programs, mode string, flags ...string) *netns.Process {
	return &netns.Process{Name: "csi-" + mode, Log: filepath.Join(folder, "csi-"+mode+".log"),
		Arguments: append([]string{filepath.Join(programs, "sluice-csi"), "--mode", mode, "--log-level", "debug",
			"--endpoint", "unix://" + filepath.Join(folder, mode+".sock")}, flags...)}
}

// Dial connects to a plugin's socket, once the plugin answers.
func Dial(ctx context.Context, socket string) (*grpc.ClientConn, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return connection, netns.Until(ctx, func() error {
		answer, err := csi.NewIdentityClient(connection).Probe(ctx, &csi.ProbeRequest{})
		if err == nil && !answer.GetReady().GetValue() {
			return errors.New("the plugin is not ready")
		}
		return err
	})
}
