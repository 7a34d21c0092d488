// Command sluice-csi is Sluice's CSI driver. The controller plugin creates volumes of the control plane for claims; the node
// plugin makes devices and mounts from them.
package main

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/operator/internal/connection"
	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/controller"
	"sluice.dev/sluice/operator/internal/csi/endpoint"
	"sluice.dev/sluice/operator/internal/csi/host"
	"sluice.dev/sluice/operator/internal/csi/identity"
	"sluice.dev/sluice/operator/internal/csi/node"
	"sluice.dev/sluice/proto/client"
)

// version of the program; set by release builds.
var version = "0"

// settings are the flags.
type settings struct {
	endpoint, mode, nodeID string
	hostRoot, stateDir     string
	metrics, chapKey       string
	controlPlane           connection.Options
	logLevel               slog.Level
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	s := &settings{}
	command := &cobra.Command{
		Use: "sluice-csi", Short: "Sluice's CSI driver: controller plugin or node plugin", Version: version,
		Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVar(&s.endpoint, "endpoint", "unix:///csi/csi.sock", "socket to serve CSI on")
	flags.StringVar(&s.mode, "mode", "", "controller or node")
	flags.StringVar(&s.nodeID, "node-id", os.Getenv("NODE_NAME"), "node: name of the Kubernetes node ($NODE_NAME)")
	flags.StringVar(&s.hostRoot, "host-root", "/host", "node: where the machine's / is mounted; / where the plugin runs outside a container")
	flags.StringVar(&s.stateDir, "state-dir", "", "node: directory on the machine for what is staged; empty: the directory volumes beside the socket")
	flags.StringVar(&s.metrics, "metrics", "", "host:port of metrics; empty: none")
	flags.StringVar(&s.chapKey, "chap-key-file", "", "controller: file with the driver's key, 32 bytes in base64 (openssl rand -base64 32); "+
		"each node's CHAP secret is derived from it and the node's own key")
	s.controlPlane.AddFlags(flags, "controller: ", "sluice:csi")
	flags.TextVar(&s.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	return command
}

func (s *settings) run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.logLevel})))
	client.LogGRPC(slog.Default())
	socket, err := endpoint.Path(s.endpoint)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	switch s.mode {
	case "controller":
		return s.controller(ctx, socket, registry)
	case "node":
		return s.node(ctx, socket, registry)
	}
	return fmt.Errorf("--mode is %q: controller and node are possible", s.mode)
}

func (s *settings) controller(ctx context.Context, socket string, registry *prometheus.Registry) error {
	key, err := driverKey(s.chapKey)
	if err != nil {
		return err
	}
	opened, err := connection.Open(s.controlPlane)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	service := controller.New(opened, key)
	if err := endpoint.ServeMetrics(ctx, s.metrics, registry); err != nil {
		return err
	}
	return endpoint.Serve(ctx, socket, registry, func(server grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(server, &identity.Service{Version: version, Controller: true, Works: service.Works})
		csi.RegisterControllerServer(server, service)
	})
}

// driverKey reads the driver's key. Every replica of the controller has the same one.
func driverKey(path string) (*ecdh.PrivateKey, error) {
	if path == "" {
		return nil, errors.New("--chap-key-file is missing: nodes log in with CHAP secrets that are derived from the key in that file; " +
			"make one by `openssl rand -base64 32`")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--chap-key-file: %w", err)
	}
	key, err := attachment.ParsePrivateKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("--chap-key-file: %s: %w", path, err)
	}
	return key, nil
}

// staged returns the directory for the records of staged volumes: beside the socket, unless a flag names another one.
func (s *settings) staged(socket string) string {
	if s.stateDir == "" {
		return filepath.Join(filepath.Dir(socket), "volumes")
	}
	return s.stateDir
}

func (s *settings) node(ctx context.Context, socket string, registry *prometheus.Registry) error {
	if s.nodeID == "" {
		return errors.New("--node-id is missing: the name of the Kubernetes node")
	}
	machine := host.Machine{Root: s.hostRoot}
	if err := machine.Check(); err != nil {
		return err
	}
	service, err := node.New(s.nodeID, machine, s.staged(socket))
	if err != nil {
		return err
	}
	registry.MustRegister(service.Metrics())
	if err := endpoint.ServeMetrics(ctx, s.metrics, registry, endpoint.Page{Path: "/registered", Show: service.Registered}); err != nil {
		return err
	}
	go service.Keep(ctx)
	return endpoint.Serve(ctx, socket, registry, func(server grpc.ServiceRegistrar) {
		// Another plugin has the controller service, but the driver as a whole has one: kubelet's registrar asks here.
		csi.RegisterIdentityServer(server, &identity.Service{Version: version, Controller: true, Works: service.Works})
		csi.RegisterNodeServer(server, service)
	})
}
