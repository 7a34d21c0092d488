// Package endpoint serves a plugin's gRPC services on its Unix socket.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxCalls bounds the concurrent calls.
const maxCalls = 256

const directoryMode = 0o750

// Path returns the socket that an endpoint names: unix:///csi/csi.sock, unix:/csi/csi.sock or /csi/csi.sock.
func Path(endpoint string) (string, error) {
	file := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix:"), "//")
	if !filepath.IsAbs(file) {
		return "", fmt.Errorf("--endpoint %q is not unix:///<absolute path of a socket>", endpoint)
	}
	return file, nil
}

// Serve listens on the socket and serves the services that `register` registers, until the context ends; calls in progress are
// completed. It replaces a socket that an earlier process left. The registry gets the metrics of the calls.
func Serve(ctx context.Context, socket string, registry prometheus.Registerer, register func(grpc.ServiceRegistrar)) error {
	if err := os.MkdirAll(filepath.Dir(socket), directoryMode); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(measured(registry), logged), grpc.MaxConcurrentStreams(maxCalls))
	register(server)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		server.GracefulStop()
	}()
	slog.InfoContext(ctx, "serving", "socket", socket)
	if err := server.Serve(listener); err != nil {
		return err
	}
	<-stopped
	return nil
}

// logged logs each call and its result. Of a request it logs only the volume, because requests contain secrets.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begun := time.Now()
	response, err := handle(ctx, request)
	level := slog.LevelDebug
	words := []any{"call", path.Base(info.FullMethod), "took", time.Since(begun).Round(time.Millisecond)}
	if named, ok := request.(interface{ GetVolumeId() string }); ok {
		words = append(words, "volume", named.GetVolumeId())
		level = slog.LevelInfo
	}
	if err != nil {
		level = slog.LevelWarn
		if code := status.Code(err); code == codes.Internal || code == codes.Unknown {
			level = slog.LevelError
		}
		words = append(words, "problem", err)
	}
	slog.Log(ctx, level, "called", words...)
	return response, err
}
