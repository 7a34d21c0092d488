package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/proto/client"
)

// diffContext is the number of equal lines around a difference, as in diff -u.
const diffContext = 3

// differentError makes `diff` exit with code 1. It has no text, because the differences are printed.
type differentError struct{}

func (*differentError) Error() string { return "the files differ from the control plane" }

// diffError is an error of `diff` that would end another command with exit code 1, which here means that there are differences.
type diffError struct{ error }

func (e *diffError) Unwrap() error { return e.error }

func diffCommand(g *globals) *cobra.Command {
	var files []string
	command := &cobra.Command{
		Use: "diff", Short: "Show what apply would change", Args: cobra.NoArgs,
		Long: "Show what `apply` would change, as a unified diff: from the objects of the control plane to the objects that apply would store. " +
			"Nothing is changed. Exit code 0: no difference; 1: differences; 10, or the code that other commands have: an error. " +
			"Secrets are neither compared nor shown. An object that names another new object of the files is shown as the file has " +
			"it, without defaults, because the control plane cannot validate it yet.",
		RunE: func(command *cobra.Command, _ []string) error {
			err := g.diff(command, files)
			var different *differentError
			if exitCode(err) == exitOther && !errors.As(err, &different) {
				err = &diffError{err}
			}
			return err
		},
	}
	addFiles(command, &files)
	return command
}

func (g *globals) diff(command *cobra.Command, files []string) error {
	objects, err := readFiles(command, files)
	if err != nil {
		return err
	}
	return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
		different := false
		created := map[string]bool{}
		for _, object := range ordered(objects) {
			have, wanted, err := preview(ctx, connection, object, created)
			if err != nil {
				return object.kind.about(metaOf(object.message).GetName(), err)
			}
			text, err := unifiedDiff(object, have, wanted)
			if err != nil {
				return err
			}
			different = different || text != ""
			if _, err := fmt.Fprint(command.OutOrStdout(), text); err != nil {
				return err
			}
			if hasSecrets(object.message) {
				_, _ = fmt.Fprintf(command.ErrOrStderr(), "note: %s %s: its secret is not compared\n", object.kind.name,
					metaOf(object.message).GetName())
			}
		}
		if different {
			return &differentError{}
		}
		return nil
	})
}

// preview returns the object that the control plane has, nil: none, and the object that `apply` would make of it. created has the objects
// of the files that do not exist yet, as needs names them.
func preview(ctx context.Context, connection *grpc.ClientConn, object described, created map[string]bool) (have, wanted proto.Message, err error) {
	k := object.kind
	verb := "Update"
	have, err = k.get(ctx, connection, metaOf(object.message).GetName())
	if client.IsNotFound(err) {
		have, verb = nil, "Create"
		created[object.String()] = true
	} else if err != nil {
		return nil, nil, err
	}
	for _, needed := range needs(object.message) {
		if created[needed] {
			return have, object.message, nil
		}
	}
	response, err := k.call(ctx, connection, verb, k.message, map[string]any{k.field: object.message, "dry_run": true})
	if err != nil {
		return nil, nil, err
	}
	return have, k.objectIn(response), nil
}

// unifiedDiff compares two states of an object as resources, without the fields that users do not set. It returns an empty text if they
// are equal.
func unifiedDiff(object described, have, wanted proto.Message) (string, error) {
	before, err := comparedText(have)
	if err != nil {
		return "", err
	}
	after, err := comparedText(wanted)
	if err != nil {
		return "", err
	}
	name := object.kind.name + "/" + metaOf(object.message).GetName()
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(before), B: lines(after), FromFile: "control-plane/" + name,
		ToFile: "files/" + name, Context: diffContext})
}

// lines returns the lines of a text, each with its end.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	return all[:len(all)-1] // after the last end of line, or in an empty text, there is nothing
}

// comparedText returns an object as YAML, without status and the part of metadata that the control plane sets; empty for nil.
func comparedText(object proto.Message) (string, error) {
	if object == nil {
		return "", nil
	}
	resource, err := convert.Write(object)
	if err != nil {
		return "", err
	}
	delete(resource, "status")
	metadata, _ := resource["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
		delete(metadata, field)
	}
	var text strings.Builder
	err = encode(&text, resource, "yaml")
	return text.String(), err
}

// hasSecrets reports whether an object of a file has a secret.
func hasSecrets(object proto.Message) bool {
	bare := proto.Clone(object)
	withoutSecrets(bare.ProtoReflect())
	return !proto.Equal(bare, object)
}
