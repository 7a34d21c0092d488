package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// findingsAge bounds the age of the findings from which a watched list computes READY.
const findingsAge = time.Second

// watchedList prints a list, and then a line for each change.
type watchedList struct {
	g          *globals
	k          *kind
	command    *cobra.Command
	connection *grpc.ClientConn
	keep       func(proto.Message) bool

	// present has the objects by name. begun: the list was printed.
	present map[string]proto.Message
	begun   bool
	// received has the names since a Reset; nil: no list is being received.
	received map[string]bool
	after    int64
	widths   []int
	without  unusable
	read     time.Time
}

// run returns when the context ends. It continues after a lost connection, from the last version that it has.
func (w *watchedList) run(ctx context.Context) error {
	w.present = map[string]proto.Message{}
	away := false
	for {
		var failed error
		err := w.k.watch(ctx, w.connection, w.after, func(received change) bool {
			away = false
			failed = w.apply(ctx, received)
			return failed != nil
		})
		switch {
		case ctx.Err() != nil || status.Code(err) == codes.Canceled:
			return nil
		case err == nil:
			return failed
		case status.Code(err) != codes.Unavailable:
			return err
		}
		if !away {
			away = true
			_, _ = fmt.Fprintln(w.command.ErrOrStderr(), "not reachable, tried again until it is:", status.Convert(err).Message())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchAgainAfter):
		}
	}
}

func (w *watchedList) apply(ctx context.Context, received change) error {
	switch received.kind {
	case pb.ChangeType_CHANGE_TYPE_RESET:
		w.received = map[string]bool{}
	case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
		w.after = received.version
		return w.bookmark(ctx)
	case pb.ChangeType_CHANGE_TYPE_PUT, pb.ChangeType_CHANGE_TYPE_DELETED:
		name := metaOf(received.object).GetName()
		before, known := w.present[name]
		if received.kind == pb.ChangeType_CHANGE_TYPE_DELETED || !w.keep(received.object) {
			delete(w.present, name)
			if known && w.begun {
				return w.print(ctx, before, "deleted")
			}
			return nil
		}
		if w.received != nil {
			w.received[name] = true
		}
		w.present[name] = received.object
		if w.begun && !(known && proto.Equal(before, received.object)) {
			return w.print(ctx, received.object, "")
		}
	}
	return nil
}

// bookmark prints the list at first. Later lists, after a Reset, show which objects were deleted meanwhile.
func (w *watchedList) bookmark(ctx context.Context) error {
	gone := []string{}
	for name := range w.present {
		if w.received != nil && !w.received[name] {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	w.received = nil
	if !w.begun {
		w.begun = true
		return w.first(ctx)
	}
	for _, name := range gone {
		object := w.present[name]
		delete(w.present, name)
		if err := w.print(ctx, object, "deleted"); err != nil {
			return err
		}
	}
	return nil
}

// first prints all objects, and keeps the widths of the columns for the lines that follow.
func (w *watchedList) first(ctx context.Context) error {
	var objects []proto.Message
	for _, object := range w.present {
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b proto.Message) int { return strings.Compare(metaOf(a).GetName(), metaOf(b).GetName()) })
	if w.g.structured() {
		for _, object := range objects {
			if err := w.print(ctx, object, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.refresh(ctx); err != nil {
		return err
	}
	rows := [][]string{headings(w.k, w.g.output == "wide")}
	for _, object := range objects {
		rows = append(rows, cells(w.k, object, w.without, w.g.output == "wide"))
	}
	w.widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			w.widths[i] = max(w.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		if err := writeRow(w.command.OutOrStdout(), row, w.widths, ""); err != nil {
			return err
		}
	}
	return nil
}

// refresh reads the findings again if they are old.
func (w *watchedList) refresh(ctx context.Context) error {
	if w.k.observed || time.Since(w.read) < findingsAge {
		return nil
	}
	without, err := unusableOf(ctx, w.connection, w.k)
	if err == nil {
		w.without, w.read = without, time.Now()
	}
	return err
}

func (w *watchedList) print(ctx context.Context, object proto.Message, note string) error {
	if w.g.structured() {
		shown, err := item(w.k, object, w.g.output)
		if err != nil {
			return err
		}
		if w.g.output == "yaml" {
			_, _ = fmt.Fprintln(w.command.OutOrStdout(), "---")
		}
		return encode(w.command.OutOrStdout(), shown, w.g.output)
	}
	if err := w.refresh(ctx); err != nil {
		return err
	}
	return writeRow(w.command.OutOrStdout(), cells(w.k, object, w.without, w.g.output == "wide"), w.widths, note)
}

func writeRow(to io.Writer, row []string, widths []int, note string) error {
	var line strings.Builder
	for i, cell := range row {
		line.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))+3))
	}
	_, err := fmt.Fprintln(to, strings.TrimRight(line.String()+note, " "))
	return err
}
