package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"sluice.dev/sluice/controlplane/internal/logs"
)

// newLog writes structured lines to standard error: at most one per cause and minute of those that warn.
func newLog(level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: debug, info, warn and error are possible", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case "text":
		return slog.New(logs.NewRepeats(slog.NewTextHandler(os.Stderr, options))), nil
	case "json":
		return slog.New(logs.NewRepeats(slog.NewJSONHandler(os.Stderr, options))), nil
	}
	return nil, fmt.Errorf("--log-format %q: text and json are possible", format)
}

func trimNewline(text string) string { return strings.TrimRight(text, "\r\n") }
