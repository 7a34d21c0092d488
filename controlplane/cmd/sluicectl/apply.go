package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	apiyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func applyCommand(g *globals) *cobra.Command {
	var file string
	var dryRun bool
	command := &cobra.Command{
		Use: "apply", Args: cobra.NoArgs,
		Short: "Create or update what a file describes",
		Long: "Create or update objects as a YAML or JSON file describes them, in its order: documents with apiVersion " +
			apiVersion + ", kind, meta and spec, or Lists of them, as `-o yaml` prints. Status is left out of account. " +
			"Where one fails, the ones before it stay as applied.",
		RunE: func(command *cobra.Command, _ []string) error {
			objects, err := readObjects(file, command.InOrStdin())
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				for _, object := range objects {
					if err := apply(ctx, command, connection, object, dryRun); err != nil {
						return fmt.Errorf("%s %s: %w", object.kind.name, metaOf(object.message).GetName(), err)
					}
				}
				return nil
			})
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "", "the file; - for standard input")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "have it validated; change nothing")
	required(command, "filename")
	return command
}

type described struct {
	kind    *kind
	message proto.Message
}

func apply(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, object described, dryRun bool) error {
	k := object.kind
	fields := map[string]any{k.field: object.message, "dry_run": dryRun}
	what := "updated"
	response, err := k.call(ctx, connection, "Update", k.message, fields)
	if status.Code(err) == codes.NotFound {
		what = "created"
		response, err = k.call(ctx, connection, "Create", k.message, fields)
	}
	if err != nil {
		return err
	}
	k.said(command, k.objectIn(response), what, dryRun)
	return nil
}

func readObjects(file string, standardInput io.Reader) ([]described, error) {
	from := standardInput
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, &usageError{err}
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	documents := apiyaml.NewYAMLReader(bufio.NewReader(from))
	var all []described
	for number := 1; ; number++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, &usageError{err}
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		raw, err := apiyaml.ToJSON(text)
		if err != nil {
			return nil, usagef("document %d: %w", number, err)
		}
		if all, err = readDocument(all, raw); err != nil {
			return nil, usagef("document %d: %w", number, err)
		}
	}
}

// readDocument reads an object or a list of them.
func readDocument(all []described, raw []byte) ([]described, error) {
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return all, nil
	}
	if head.APIVersion != apiVersion {
		return nil, fmt.Errorf("apiVersion is %q, not %q", head.APIVersion, apiVersion)
	}
	if head.Kind == "List" {
		for _, item := range head.Items {
			var err error
			if all, err = readDocument(all, item); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	for _, k := range kinds {
		if k.message == head.Kind && k.observed {
			return nil, fmt.Errorf("a %s comes and goes by itself; it cannot be applied", k.message)
		}
		if k.message == head.Kind {
			object, err := readObject(k, raw)
			return append(all, described{k, object}), err
		}
	}
	return nil, fmt.Errorf("there is no kind %q", head.Kind)
}

// readObject refuses fields that the kind does not have: a misspelt one would silently be left out.
func readObject(k *kind, raw []byte) (proto.Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	delete(fields, "status")
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	object, err := message(k.message)
	if err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(rest, object); err != nil {
		return nil, fmt.Errorf("%s: %w", k.message, err)
	}
	if metaOf(object).GetName() == "" {
		return nil, fmt.Errorf("%s: meta.name is missing", k.message)
	}
	return object, nil
}
