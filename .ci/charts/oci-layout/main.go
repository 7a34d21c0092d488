// oci-layout DIRECTORY FILE... : writes an OCI image layout for each image archive (build/images/NAME.oci) and each chart
// (NAME-VERSION.tgz) below the directory: NAME/ and charts/NAME/. A registry that stores layouts, such as zot, serves the directory
// as it is. `skopeo copy oci:DIRECTORY/NAME:TAG docker://…` copies one of them to any other registry.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: oci-layout DIRECTORY FILE...")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "oci-layout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, directory string, files []string) error {
	for _, file := range files {
		var err error
		if name, image := strings.CutSuffix(filepath.Base(file), ".oci"); image {
			err = copyImage(ctx, file, filepath.Join(directory, name))
		} else {
			err = pushChart(ctx, file, filepath.Join(directory, "charts"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// copyImage copies each tag of an archive, with its digest.
func copyImage(ctx context.Context, archive, to string) error {
	source, err := oci.NewFromTar(ctx, archive)
	if err != nil {
		return err
	}
	target, err := oci.NewWithContext(ctx, to)
	if err != nil {
		return err
	}
	return source.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			if _, err := oras.Copy(ctx, source, tag, target, tag, oras.DefaultCopyOptions); err != nil {
				return err
			}
		}
		return nil
	})
}

// pushChart stores a chart as `helm push` would. The tag is its version.
func pushChart(ctx context.Context, path, directory string) error {
	loaded, err := loader.Load(path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	metadata, err := json.Marshal(loaded.Metadata)
	if err != nil {
		return err
	}
	target, err := oci.NewWithContext(ctx, filepath.Join(directory, loaded.Name()))
	if err != nil {
		return err
	}
	config, err := oras.PushBytes(ctx, target, registry.ConfigMediaType, metadata)
	if err != nil {
		return err
	}
	layer, err := oras.PushBytes(ctx, target, registry.ChartLayerMediaType, content)
	if err != nil {
		return err
	}
	// The same chart gives the same layout.
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	manifest, err := oras.PackManifest(ctx, target, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer},
		ManifestAnnotations: map[string]string{ocispec.AnnotationTitle: loaded.Name(), ocispec.AnnotationVersion: loaded.Metadata.Version,
			ocispec.AnnotationCreated: time.Unix(seconds, 0).UTC().Format(time.RFC3339)}})
	if err != nil {
		return err
	}
	return target.Tag(ctx, manifest, strings.ReplaceAll(loaded.Metadata.Version, "+", "_")) // a tag has no '+'
}
