package client

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/grpclog"
)

func TestLinesOfGRPCAreStructuredLinesOfTheLog(t *testing.T) {
	var out bytes.Buffer
	LogGRPC(slog.New(slog.NewJSONHandler(&out, nil)))
	t.Cleanup(func() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) })
	grpclog.Info("quiet")
	grpclog.Component("core").Errorf("dial\n%d failed", 7)
	grpclog.Warning("odd")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"level":"WARN","msg":"gRPC","text":"[core] dial\n7 failed"`) ||
		!strings.Contains(lines[1], `"level":"WARN","msg":"gRPC","text":"odd"`) {
		t.Errorf("%q", lines)
	}
	if grpclog.V(0) || grpclog.V(2) {
		t.Error("it composes lines that are not logged")
	}
}
