package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// editHeader is the comment at the begin of the file that an editor opens.
const editHeader = "# Lines that begin with # are ignored. Nothing is changed if the rest stays as it is.\n"

func editCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "edit KIND NAME", Short: "Change an object in an editor", Args: cobra.ExactArgs(2),
		Long: "Change an object in an editor: $VISUAL, $EDITOR, else vi. The file has the form of `-o yaml`. After an error the file is opened " +
			"again, with the error as a comment. Without a change of the text nothing is done. If another user changes the object " +
			"meanwhile, nothing is stored (exit code 4), and the text is kept.",
		ValidArgsFunction: completeObject(g),
		RunE: func(command *cobra.Command, arguments []string) error {
			k, err := changeableKind(arguments[0])
			if err != nil {
				return err
			}
			e := &editing{g: g, command: command, kind: k}
			err = with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				e.object, err = k.get(ctx, connection, arguments[1])
				return err
			})
			if err != nil {
				return err
			}
			return e.run()
		},
	}
}

// editing is one call of `edit`. It is connected only while it reads and stores the object, because an editor has no time limit.
type editing struct {
	g       *globals
	command *cobra.Command
	kind    *kind
	// object is the object before the change.
	object proto.Message
	// file is the name of the temporary file.
	file string
}

func (e *editing) run() error {
	var text strings.Builder
	if err := document(&text, e.kind, []proto.Message{e.object}, true, "yaml"); err != nil {
		return err
	}
	file, err := os.CreateTemp("", "sluicectl-*.yaml") // with mode 0600
	if err != nil {
		return err
	}
	e.file = file.Name()
	if err := file.Close(); err != nil {
		return err
	}
	kept, err := e.repeat(text.String())
	if kept {
		_, _ = fmt.Fprintln(e.command.ErrOrStderr(), "note: the text is kept in", e.file)
		return err
	}
	return errors.Join(err, os.Remove(e.file))
}

// repeat opens the editor until the text can be stored, or is not changed any more. kept: the file has changes that are not stored.
func (e *editing) repeat(original string) (kept bool, err error) {
	text, header := original, editHeader
	var failed error
	for {
		edited, err := e.edit(header + text)
		switch {
		case err != nil:
			return failed != nil, err
		case edited == original || strings.TrimSpace(edited) == "":
			return false, e.g.reportChange(e.command, e.kind, e.object, "unchanged", false)
		case failed != nil && edited == text:
			return true, failed
		}
		if failed = e.store(edited); failed == nil || !correctable(failed) {
			return failed != nil, failed
		}
		var why strings.Builder
		report(&why, failed)
		text, header = edited, editHeader
		for line := range strings.Lines(why.String()) {
			header += "# " + line
		}
	}
}

// correctable reports whether another text can avoid an error.
func correctable(err error) bool {
	var usage *usageError
	code := status.Code(err)
	return errors.As(err, &usage) || code == codes.InvalidArgument || code == codes.FailedPrecondition || code == codes.AlreadyExists
}

// edit lets the user edit a text, and returns it without the comments at its begin.
func (e *editing) edit(text string) (string, error) {
	if err := os.WriteFile(e.file, []byte(text), 0o600); err != nil {
		return "", err
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	run := exec.CommandContext(e.command.Context(), "sh", "-c", editor+` "$1"`, "sh", e.file) // the variable may have arguments, too
	run.Stdin, run.Stdout, run.Stderr = e.command.InOrStdin(), e.command.OutOrStdout(), e.command.ErrOrStderr()
	if err := run.Run(); err != nil {
		return "", usagef("the editor %q: %w; set VISUAL or EDITOR to another one", editor, err)
	}
	edited, err := os.ReadFile(e.file)
	rest := string(edited)
	for strings.HasPrefix(rest, "#") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return rest, err
}

// store updates the object to the state that a text describes.
func (e *editing) store(text string) error {
	read := documents{}
	if err := read.add("-", strings.NewReader(text)); err != nil {
		return err
	}
	objects, err := read.objects()
	if err != nil {
		return err
	}
	name := metaOf(e.object).GetName()
	if len(objects) != 1 || objects[0].kind != e.kind || metaOf(objects[0].message).GetName() != name {
		return usagef("the text has to describe %s %s alone: kind and name cannot change", e.kind.name, name)
	}
	read.report(e.command)
	return with(e.command, e.g, func(ctx context.Context, connection *grpc.ClientConn) error {
		same, err := unchanged(ctx, connection, objects[0])
		if err != nil {
			return err
		}
		if same != nil {
			return e.g.reportChange(e.command, e.kind, same, "unchanged", false)
		}
		response, err := e.kind.call(ctx, connection, "Update", e.kind.message, map[string]any{e.kind.field: objects[0].message})
		if err != nil {
			return err
		}
		return e.g.reportChange(e.command, e.kind, e.kind.objectIn(response), "updated", false)
	})
}
