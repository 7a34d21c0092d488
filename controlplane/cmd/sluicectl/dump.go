package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxMetrics bounds the part of a metrics page that is saved, in bytes.
const maxMetrics = 64 << 20

func dumpCommand(g *globals) *cobra.Command {
	var file string
	var metrics []string
	command := &cobra.Command{
		Use: "dump", Args: cobra.NoArgs,
		Short: "Save the state of the system in one archive, without secrets, for support",
		Long: "Save all objects, sessions, events, status, findings and versions, and metrics where they are named, in one " +
			"compressed archive. Secrets are not in it: the control plane never shows them, and fields that are marked " +
			"secret are left out again here. Names and addresses are in it.",
		RunE: func(command *cobra.Command, _ []string) error {
			if file == "" {
				file = "sluice-dump-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				parts, err := g.collect(ctx, connection, metrics)
				if err != nil {
					return err
				}
				if err := parts.save(file); err != nil {
					return err
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "%d files in %s\n", len(parts.files), file)
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVarP(&file, "output", "o", "", "the archive; empty: sluice-dump-<time>.tar.gz here")
	flags.StringSliceVar(&metrics, "metrics", nil, "addresses of metrics to add, as in http://127.0.0.1:7461/metrics")
	return command
}

// bundle is the content of the archive, in order.
type bundle struct {
	files []bundled
	// problems lists the parts that could not be read. The others are saved.
	problems []string
}

type bundled struct {
	name string
	text []byte
}

func (b *bundle) add(name string, text []byte) { b.files = append(b.files, bundled{name, text}) }

// write adds the output of a function.
func (b *bundle) write(name string, print func(io.Writer) error) {
	var text bytes.Buffer
	if err := print(&text); err != nil {
		b.problems = append(b.problems, name+": "+err.Error())
	}
	b.add(name, text.Bytes())
}

func (g *globals) collect(ctx context.Context, connection *grpc.ClientConn, metrics []string) (*bundle, error) {
	seen, err := survey(ctx, connection)
	if err != nil {
		return nil, err
	}
	b := &bundle{}
	g = &globals{server: g.server, insecure: g.insecure, tls: g.tls, output: "yaml"}
	b.write("versions.yaml", func(to io.Writer) error {
		shown := map[string]any{"sluicectl": version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
			"server": g.server, "time": time.Now().UTC().Format(time.RFC3339)}
		if err := asMap(seen.controlOrEmpty(), shown); err != nil {
			return err
		}
		return encode(to, shown, "yaml")
	})
	for _, k := range kinds {
		for _, object := range seen.objects[k] {
			withoutSecrets(object.ProtoReflect())
		}
		b.write("objects/"+k.name+".yaml", func(to io.Writer) error {
			return messages(to, k, seen.objects[k])
		})
	}
	query := eventQuery{}
	events, _, err := query.list(ctx, pb.NewEventServiceClient(connection))
	if err != nil {
		b.problems = append(b.problems, "events: "+err.Error())
	}
	b.write("events.yaml", func(to io.Writer) error { return g.printEvents(to, events) })
	findings, err := findingsOf(ctx, connection, &pb.ListFindingsRequest{})
	if err != nil {
		b.problems = append(b.problems, "findings: "+err.Error())
	}
	b.write("status.txt", func(to io.Writer) error {
		shown, err := seen.overview(g, findings, events[max(0, len(events)-20):])
		if err != nil {
			return err
		}
		return shown.print(to)
	})
	b.write("doctor.txt", func(to io.Writer) error {
		writeFindings(to, "", append(findings, g.localFindings(seen.controlPlane, time.Now())...))
		return nil
	})
	for i, url := range metrics {
		b.write(fmt.Sprintf("metrics-%d.txt", i+1), func(to io.Writer) error { return fetch(ctx, url, to) })
	}
	if len(b.problems) > 0 {
		b.add("problems.txt", []byte(strings.Join(b.problems, "\n")+"\n"))
	}
	return b, nil
}

func (w *clusterObjects) controlOrEmpty() *pb.GetControlPlaneResponse {
	if w.control == nil {
		return &pb.GetControlPlaneResponse{}
	}
	return w.control
}

// withoutSecrets clears the fields that the API's definition marks as secret, at any depth.
func withoutSecrets(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		options, _ := field.Options().(*descriptorpb.FieldOptions)
		switch {
		case proto.GetExtension(options, pb.E_Secret).(bool):
			m.Clear(field)
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				withoutSecrets(value.List().Get(i).Message())
			}
		default:
			withoutSecrets(value.Message())
		}
		return true
	})
}

func fetch(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answers %s", response.Status)
	}
	_, err = io.Copy(to, io.LimitReader(response.Body, maxMetrics))
	return err
}

// save writes to another name and renames, as backup does.
func (b *bundle) save(name string) error {
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &usageError{err}
	}
	defer func() { _ = file.Close() }() // closes again after success
	if err := b.archive(file); err != nil {
		_ = os.Remove(name + ".new")
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (b *bundle) archive(to io.Writer) error {
	packed := gzip.NewWriter(to)
	archive := tar.NewWriter(packed)
	now := time.Now()
	for _, file := range b.files {
		header := &tar.Header{Name: "sluice-dump/" + file.name, Mode: 0o600, Size: int64(len(file.text)), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(file.text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}
