package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// exitFailed is the exit code of a process whose embedded etcd cannot continue.
const exitFailed = 1

// exit is os.Exit except in tests.
var exit = osExit

func osExit(code int) { os.Exit(code) }

// FatalLog returns a logger for an embedded etcd. It drops all messages except those with which etcd ends the process (levels
// fatal and panic). For each of these it writes one line with cause and remedy to `log`, and ends the process with code 1. etcd
// has stopped in the middle of a change of its files, so nothing else may continue.
func FatalLog(directory string, log *slog.Logger) *zap.Logger {
	end := fatalEnd{}
	return zap.New(&fatalCore{directory: directory, log: log}, zap.WithFatalHook(end), zap.WithPanicHook(end))
}

type fatalEnd struct{}

func (fatalEnd) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) { exit(exitFailed) }

type fatalCore struct {
	directory string
	log       *slog.Logger
	with      []zapcore.Field
}

func (*fatalCore) Enabled(level zapcore.Level) bool { return level >= zapcore.PanicLevel }

func (c *fatalCore) With(fields []zapcore.Field) zapcore.Core {
	with := append(append([]zapcore.Field{}, c.with...), fields...)
	return &fatalCore{directory: c.directory, log: c.log, with: with}
}

func (c *fatalCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *fatalCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	text := entry.Message
	values := zapcore.NewMapObjectEncoder()
	var cause error
	for _, field := range append(append([]zapcore.Field{}, c.with...), fields...) {
		field.AddTo(values)
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			cause = err
		}
	}
	if cause != nil {
		text += ": " + cause.Error()
	}
	c.log.Error("the embedded etcd can't go on: this process ends", "problem", text, "remedy", remedy(c.directory, text, cause),
		"details", fmt.Sprint(values.Fields))
	return nil
}

func (*fatalCore) Sync() error { return nil }

// missingMember is etcd's message of a member that was removed, if it looks for itself before it stops.
const missingMember = "failed to find local ID in cluster members"

// remedy returns what an administrator should do about a failure of the embedded etcd.
func remedy(directory, text string, cause error) string {
	full := func(errno syscall.Errno) bool {
		return errors.Is(cause, errno) || strings.Contains(text, errno.Error()) // etcd formats some errors into the message
	}
	switch {
	case strings.Contains(text, missingMember):
		return "this member was removed from the cluster: its data in " + directory + " is void. To join again, move it away and join with a new token"
	case full(syscall.ENOSPC), full(syscall.EDQUOT):
		return "the file system of " + directory + " is full: free space on it, or enlarge it, then start this process again; what was " +
			"acknowledged is not lost"
	case full(syscall.EROFS):
		return "the file system of " + directory + " is read-only: see the kernel's log for the reason, repair it, and start this process again"
	case full(syscall.EACCES), full(syscall.EPERM):
		return "this process may not write in " + directory + ": give it the directory (chown) and start it again"
	}
	return "see whether the disk of " + directory + " is well (the kernel's log); start this process again; where that fails each time, " +
		"restore the newest backup (`sluice-controlplane restore --help`)"
}
