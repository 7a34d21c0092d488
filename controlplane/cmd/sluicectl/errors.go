package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/kubernetes"
	"sluice.dev/sluice/proto/client"
)

// Exit codes are stable, because scripts depend on them.
const (
	exitDone           = 0
	exitOther          = 1
	exitUsage          = 2
	exitNotFound       = 3
	exitConflict       = 4
	exitNotNow         = 5
	exitNotAllowed     = 6
	exitNotReachable   = 7
	exitDeadlineIsOver = 8
	exitReplaced       = 9
	// exitDiffer and exitDiffFailed are those of `diff`, whose code 1 means differences, as that of diff(1).
	exitDiffer     = 1
	exitDiffFailed = 10
)

// usageError is an invalid command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	var usage *usageError
	var serious *seriousError
	var replaced *replacedError
	var broken *brokenError
	var different *differentError
	var diff *diffError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &different):
		return exitDiffer
	case errors.As(err, &diff):
		return exitDiffFailed
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &serious), errors.As(err, &broken):
		return exitNotNow
	case errors.As(err, &replaced):
		return exitReplaced
	case errors.Is(err, context.DeadlineExceeded):
		return exitDeadlineIsOver
	}
	switch status.Code(err) {
	case codes.InvalidArgument:
		return exitUsage
	case codes.NotFound:
		return exitNotFound
	case codes.AlreadyExists, codes.Aborted:
		return exitConflict
	case codes.FailedPrecondition, codes.ResourceExhausted:
		return exitNotNow
	case codes.PermissionDenied, codes.Unauthenticated:
		return exitNotAllowed
	case codes.Unavailable:
		return exitNotReachable
	case codes.DeadlineExceeded:
		return exitDeadlineIsOver
	}
	return exitOther
}

// objectError names the object of an error, if there are several objects.
type objectError struct {
	object string
	err    error
}

func (e *objectError) Error() string { return e.object + ": " + e.err.Error() }

func (e *objectError) Unwrap() error { return e.err }

// report prints an error, with a line for each field that the server named.
func report(to io.Writer, err error) {
	if all, several := err.(interface{ Unwrap() []error }); several { //nolint:errorlint // the error itself has the list
		for _, one := range all.Unwrap() {
			report(to, one)
		}
		return
	}
	var different *differentError
	if errors.As(err, &different) { // the differences were printed
		return
	}
	prefix := "error: "
	var failed *objectError
	if errors.As(err, &failed) {
		prefix, err = prefix+failed.object+": ", failed.err
	}
	answer, isStatus := status.FromError(err)
	if !isStatus {
		_, _ = fmt.Fprintln(to, prefix+err.Error())
		return
	}
	var given *flagsError
	errors.As(err, &given)
	fields := client.Fields(err)
	for _, field := range fields {
		name := field.GetField()
		if given != nil && given.flag(name) != "" {
			name = given.flag(name) + " (" + name + ")"
		}
		_, _ = fmt.Fprintf(to, "%s%s: %s\n", prefix, name, field.GetDescription())
	}
	if len(fields) == 0 {
		_, _ = fmt.Fprintln(to, prefix+answer.Message())
	}
	var access *kubernetes.Error
	if answer.Code() == codes.Unavailable && !errors.As(err, &access) {
		_, _ = fmt.Fprintln(to, "Is the control plane running, and is --server (or SLUICE_SERVER) its address? "+
			"A plain one needs --insecure here, too.")
	}
}
