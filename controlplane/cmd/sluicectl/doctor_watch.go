package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// watchedDoctor prints the findings, and then each that is new, has changed or has ended.
type watchedDoctor struct {
	out io.Writer

	// present has the findings that were printed, by key.
	present map[string]*pb.Finding
	begun   bool
	// received has the keys since a Reset; nil: changes are being received.
	received map[string]bool
}

// watchFindings returns when the context ends. After a lost connection it prints what has changed meanwhile.
func watchFindings(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn) error {
	w := &watchedDoctor{out: command.OutOrStdout(), present: map[string]*pb.Finding{}}
	away := false
	for {
		err := w.follow(ctx, connection, func() { away = false })
		switch {
		case ctx.Err() != nil:
			return nil
		case status.Code(err) == codes.Unimplemented:
			return fmt.Errorf("the control plane is of a release without a watch of findings; use `sluicectl doctor` without --watch: %w", err)
		case status.Code(err) != codes.Unavailable:
			return err
		}
		if !away {
			away = true
			_, _ = fmt.Fprintln(command.ErrOrStderr(), "not reachable, tried again until it is:", status.Convert(err).Message())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchAgainAfter):
		}
	}
}

// follow prints what one stream sends until it ends.
func (w *watchedDoctor) follow(ctx context.Context, connection *grpc.ClientConn, reached func()) error {
	stream, err := pb.NewFindingServiceClient(connection).WatchFindings(ctx, &pb.WatchFindingsRequest{})
	for err == nil {
		var change *pb.WatchFindingsResponse
		if change, err = stream.Recv(); err == nil {
			reached()
			w.apply(change)
		}
	}
	return err
}

func (w *watchedDoctor) apply(change *pb.WatchFindingsResponse) {
	key, found := change.GetKey(), change.GetFinding()
	switch change.GetType() {
	case pb.ChangeType_CHANGE_TYPE_RESET:
		w.received = map[string]bool{}
	case pb.ChangeType_CHANGE_TYPE_PUT:
		before, known := w.present[key]
		w.present[key] = found
		if w.received != nil {
			w.received[key] = true
		}
		switch {
		case !w.begun:
			writeFindings(w.out, "", []*pb.Finding{found})
		case !known:
			w.print("new", found)
		case findingText(before) != findingText(found): // the start alone is not printed
			w.print("changed", found)
		}
	case pb.ChangeType_CHANGE_TYPE_DELETED:
		w.end(key)
	case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
		w.bookmark()
	}
}

// bookmark ends what the control plane found together. Findings that were not received since a Reset have ended meanwhile.
func (w *watchedDoctor) bookmark() {
	var ended []string
	for key := range w.present {
		if w.received != nil && !w.received[key] {
			ended = append(ended, key)
		}
	}
	slices.Sort(ended)
	for _, key := range ended {
		w.end(key)
	}
	if !w.begun && len(w.present) == 0 {
		_, _ = fmt.Fprintln(w.out, "nothing is wrong")
	}
	w.begun, w.received = true, nil
}

func (w *watchedDoctor) end(key string) {
	if found, known := w.present[key]; known {
		delete(w.present, key)
		_, _ = fmt.Fprintf(w.out, "%s ended %s: %s: %s\n", time.Now().Format(time.TimeOnly), found.GetId(), subject(found), found.GetCause())
	}
}

func (w *watchedDoctor) print(what string, found *pb.Finding) {
	_, _ = fmt.Fprintf(w.out, "%s %s %s", time.Now().Format(time.TimeOnly), what, findingText(found))
}

func findingText(found *pb.Finding) string {
	var text strings.Builder
	writeFindings(&text, "", []*pb.Finding{found})
	return text.String()
}
