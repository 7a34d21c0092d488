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
	"sigs.k8s.io/yaml"
)

func applyCommand(g *globals) *cobra.Command {
	var files []string
	var dryRun bool
	command := &cobra.Command{
		Use: "apply", Args: cobra.NoArgs,
		Short: "Create or update what a file describes",
		Long: "Create or update objects as a YAML or JSON file describes them, in its order: documents with apiVersion " +
			apiVersion + ", kind, meta and spec, or Lists of them, as `-o yaml` prints. Status is left out of account. " +
			"Where one fails, the ones before it stay as applied.",
		RunE: func(command *cobra.Command, _ []string) error {
			var objects []described
			for _, file := range files {
				inFile, err := readObjects(file, command.InOrStdin())
				if err != nil {
					return err
				}
				objects = append(objects, inFile...)
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				return g.apply(ctx, command, connection, objects, dryRun)
			})
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "the file; - for standard input; repeat for more")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "have it validated; change nothing")
	required(command, "filename")
	return command
}

type described struct {
	kind    *kind
	message proto.Message
}

// apply says of each object what became of it, or shows them all where JSON or YAML is asked for: also those before one that fails.
func (g *globals) apply(ctx context.Context, command *cobra.Command, connection *grpc.ClientConn, objects []described,
	dryRun bool,
) error {
	items := []map[string]any{}
	var failed error
	for _, object := range objects {
		applied, what, err := applyOne(ctx, connection, object, dryRun)
		if err != nil {
			failed = &objectError{object.kind.name + " " + metaOf(object.message).GetName(), err}
			break
		}
		if !g.structured() {
			object.kind.said(command, applied, what, dryRun)
			continue
		}
		item, err := plain(object.kind, applied)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	if !g.structured() || failed != nil && len(items) == 0 {
		return failed
	}
	return errors.Join(encodeItems(command.OutOrStdout(), items, len(objects) == 1, g.output), failed)
}

func applyOne(ctx context.Context, connection *grpc.ClientConn, object described, dryRun bool) (proto.Message, string, error) {
	k := object.kind
	fields := map[string]any{k.field: object.message, "dry_run": dryRun}
	what := "updated"
	response, err := k.call(ctx, connection, "Update", k.message, fields)
	if status.Code(err) == codes.NotFound {
		what = "created"
		response, err = k.call(ctx, connection, "Create", k.message, fields)
	}
	if err != nil {
		return nil, "", err
	}
	return k.objectIn(response), what, nil
}

// readObjects reads what a file describes, which has to be something, if only a List of nothing, as is printed where nothing is: a
// file that is empty is another one than was meant.
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
	empty := true
	for number := 1; ; number++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) && empty {
			return nil, usagef("%s describes no object", file)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, &usageError{err}
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict(text) // of a key given twice the last one would silently count
		if err != nil {
			return nil, usagef("document %d: %w", number, err)
		}
		empty = empty && string(raw) == "null"
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
