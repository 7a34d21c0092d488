// Command csi-node-driver-registrar tells a kubelet of a CSI driver, by the flags of the sidecar of that name: none of that one's
// versions can be had as a Go module (they are 2.x, and its path has no /v2). Only for tests; a flag it does not know ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	directory = "/registration" // where the sidecar expects the kubelet's plugins_registry
	patience  = 30 * time.Second
)

// server is what the kubelet asks.
type server struct {
	registration.UnsafeRegistrationServer
	driver, endpoint string
	refused          chan error
}

func (s *server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: s.driver, Endpoint: s.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (s *server) NotifyRegistrationStatus(_ context.Context, is *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("the kubelet says: registered %t %s", is.GetPluginRegistered(), is.GetError())
	if !is.GetPluginRegistered() {
		s.refused <- errors.New(is.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// driverOf asks the driver its name, as long as it takes to start.
func driverOf(ctx context.Context, socket string) (string, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return info.GetName(), err
}

func run() error {
	socket := flag.String("csi-address", "", "socket of the driver, here")
	endpoint := flag.String("kubelet-registration-path", "", "the same socket, where the kubelet has it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	driver, err := driverOf(ctx, *socket)
	if err != nil {
		return fmt.Errorf("driver at %s: %w", *socket, err)
	}
	at := filepath.Join(directory, driver+"-reg.sock")
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", at)
	if err != nil {
		return err
	}
	s := &server{driver: driver, endpoint: *endpoint, refused: make(chan error, 1)}
	serving := grpc.NewServer()
	registration.RegisterRegistrationServer(serving, s)
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(listener) }()
	select {
	case <-ctx.Done():
		serving.Stop() // and the socket is gone: the kubelet then knows that the driver is
		return nil
	case err = <-ended:
	case err = <-s.refused:
	}
	return err
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
