package main

import (
	"context"
	"errors"
	"maps"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/proto/client"
)

func applyCommand(g *globals) *cobra.Command {
	var files []string
	var dryRun bool
	var surplus pruning
	command := &cobra.Command{
		Use: "apply", Args: cobra.NoArgs,
		Short: "Create or update what a file describes",
		Long: "Create or update objects as YAML or JSON files describe them: documents with apiVersion " + convert.APIVersion +
			", kind, metadata and spec, or Lists of them, as `-o yaml` prints and the custom resources in Kubernetes have. Each object " +
			"is applied after those of the files that it names. When one fails, the ones before it stay as applied. Status is ignored. " +
			"An object with metadata.resourceVersion, as `-o yaml` prints it, is not applied if it was changed since. `diff` shows what " +
			"would change.\n\n" +
			"A secretRef names a Secret, which one of the files has, too. Without a secretRef the control plane keeps the secret that it " +
			"has. Fields that only the operator uses have no effect. Documents with apiVersion " + apiVersion + ", meta and spec are in a " +
			"deprecated format, which still works.\n\n" +
			"With --prune, the objects of all kinds that have the labels of --selector and that no file has are deleted, after all objects " +
			"were applied. Their names are shown, and on a terminal the command asks first. Without a terminal it needs --yes.",
		RunE: func(command *cobra.Command, _ []string) error {
			objects, err := readFiles(command, files)
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				deleted, err := surplus.surplus(ctx, connection, objects)
				if err != nil {
					return err
				}
				if !dryRun {
					if err := surplus.confirm(ctx, command, connection, deleted); err != nil {
						return err
					}
				}
				if err := g.apply(ctx, command, connection, ordered(objects), dryRun); err != nil {
					return err
				}
				return g.prune(ctx, command, connection, deleted, dryRun)
			})
		},
	}
	addFiles(command, &files)
	surplus.addFlags(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	return command
}

// addFiles adds the flag that names the files with objects.
func addFiles(command *cobra.Command, files *[]string) {
	command.Flags().StringArrayVarP(files, "filename", "f", nil, "the file; - for standard input; repeat for more")
	required(command, "filename")
}

// readFiles reads the objects of all files.
func readFiles(command *cobra.Command, files []string) ([]described, error) {
	read := documents{}
	for _, file := range files {
		if err := read.add(file, command.InOrStdin()); err != nil {
			return nil, err
		}
	}
	objects, err := read.objects()
	if err == nil {
		read.report(command)
	}
	return objects, err
}

type described struct {
	kind    *kind
	message proto.Message
}

// String names the object as needs does.
func (d described) String() string { return d.kind.message + " " + metaOf(d.message).GetName() }

// apply prints the result for each object, or all objects in JSON or YAML, including the objects that were applied before a failure.
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
			object.kind.printChange(command, applied, what, dryRun)
			continue
		}
		item, err := item(object.kind, applied, g.output)
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
	if same, err := unchanged(ctx, connection, object); same != nil || err != nil {
		return same, "unchanged", err
	}
	fields := map[string]any{k.field: object.message, "dry_run": dryRun}
	what := "updated"
	response, err := k.call(ctx, connection, "Update", k.message, fields)
	if client.IsNotFound(err) {
		what = "created"
		response, err = k.call(ctx, connection, "Create", k.message, fields)
	}
	if err != nil {
		return nil, "", err
	}
	return k.objectIn(response), what, nil
}

// unchanged returns the present object if a file with its version describes just that. An update would give it another version, and the
// next `apply` of the file would fail. It returns nil if the update would change the object, or if the file has a secret, which cannot be
// compared. Errors: those of the update.
func unchanged(ctx context.Context, connection *grpc.ClientConn, object described) (proto.Message, error) {
	k, wanted := object.kind, object.message
	if metaOf(wanted).GetResourceVersion() == 0 || hasSecrets(wanted) {
		return nil, nil
	}
	have, err := k.get(ctx, connection, metaOf(wanted).GetName())
	if client.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	response, err := k.call(ctx, connection, "Update", k.message, map[string]any{k.field: wanted, "dry_run": true})
	if err != nil {
		return nil, err
	}
	updated := k.objectIn(response)
	if !proto.Equal(specOf(updated), specOf(have)) || !maps.Equal(metaOf(updated).GetLabels(), metaOf(have).GetLabels()) {
		return nil, nil
	}
	return have, nil
}

func specOf(object proto.Message) proto.Message {
	reflected := object.ProtoReflect()
	return reflected.Get(reflected.Descriptor().Fields().ByName("spec")).Message().Interface()
}
