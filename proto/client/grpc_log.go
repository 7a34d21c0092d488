package client

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"google.golang.org/grpc/grpclog"
)

// LogGRPC makes the lines that gRPC logs itself lines of a structured logger, instead of lines on standard error in another form. gRPC's
// warnings and errors become warnings, because a peer that has gone away is an error of gRPC; its other lines are of level debug. It is
// for the whole process, and must be called before any other use of gRPC.
func LogGRPC(log *slog.Logger) { grpclog.SetLoggerV2(&grpcLog{log}) }

// grpcLog implements grpclog.LoggerV2.
type grpcLog struct{ log *slog.Logger }

func (g *grpcLog) write(level slog.Level, text string) {
	g.log.Log(context.Background(), level, "gRPC", "text", strings.TrimSpace(text))
}

func (g *grpcLog) Info(args ...any)   { g.write(slog.LevelDebug, fmt.Sprint(args...)) }
func (g *grpcLog) Infoln(args ...any) { g.write(slog.LevelDebug, fmt.Sprintln(args...)) }
func (g *grpcLog) Infof(format string, args ...any) {
	g.write(slog.LevelDebug, fmt.Sprintf(format, args...))
}
func (g *grpcLog) Warning(args ...any)   { g.write(slog.LevelWarn, fmt.Sprint(args...)) }
func (g *grpcLog) Warningln(args ...any) { g.write(slog.LevelWarn, fmt.Sprintln(args...)) }
func (g *grpcLog) Warningf(format string, args ...any) {
	g.write(slog.LevelWarn, fmt.Sprintf(format, args...))
}
func (g *grpcLog) Error(args ...any)   { g.write(slog.LevelWarn, fmt.Sprint(args...)) }
func (g *grpcLog) Errorln(args ...any) { g.write(slog.LevelWarn, fmt.Sprintln(args...)) }
func (g *grpcLog) Errorf(format string, args ...any) {
	g.write(slog.LevelWarn, fmt.Sprintf(format, args...))
}

// fatal ends the process, as grpclog demands.
func (g *grpcLog) fatal(text string) {
	g.write(slog.LevelError, text)
	os.Exit(1)
}

func (g *grpcLog) Fatal(args ...any)                 { g.fatal(fmt.Sprint(args...)) }
func (g *grpcLog) Fatalln(args ...any)               { g.fatal(fmt.Sprintln(args...)) }
func (g *grpcLog) Fatalf(format string, args ...any) { g.fatal(fmt.Sprintf(format, args...)) }

// V reports whether gRPC logs information of a verbosity: only if the logger takes level debug.
func (g *grpcLog) V(level int) bool {
	return level <= 0 && g.log.Enabled(context.Background(), slog.LevelDebug)
}
