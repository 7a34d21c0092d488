package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/operator/convert"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// apiVersion is that of the API's messages, which `-o json` prints. `apply` still reads them, with a note that the format is deprecated.
const apiVersion = "sluice.dev/v1"

// listVersion is the apiVersion of a List of resources, as in kubectl.
const listVersion = "v1"

// print writes objects in the format of --output. `without` names the objects that no host can use. Several objects in a format for programs
// are a List.
func (g *globals) print(to io.Writer, k *kind, objects []proto.Message, without unusable, single bool) error {
	if g.structured() {
		return document(to, k, objects, single, g.output)
	}
	return table(to, k, objects, without, g.output == "wide")
}

// formats are the values of --output; the last one begins a template.
var formats = []string{"table", "wide", "json", "yaml", "name", pathFormat}

// structured reports whether the output is for programs.
func (g *globals) structured() bool { return g.output != "table" && g.output != "wide" }

// checkOutput refuses an unknown format before anything is changed.
func (g *globals) checkOutput() error {
	if strings.HasPrefix(g.output, pathFormat) {
		_, err := parsePath(g.output)
		return err
	}
	if slices.Contains(formats, g.output) {
		return nil
	}
	return usagef("--output %q: table, wide, json, yaml, name and jsonpath=TEMPLATE are possible", g.output)
}

func table(to io.Writer, k *kind, objects []proto.Message, without unusable, wide bool) error {
	out := tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(out, strings.Join(headings(k, wide), "\t"))
	for _, object := range objects {
		_, _ = fmt.Fprintln(out, strings.Join(cells(k, object, without, wide), "\t"))
	}
	return out.Flush()
}

func headings(k *kind, wide bool) []string {
	row := []string{"NAME"}
	if !k.observed {
		row = append(row, "READY")
	}
	for _, column := range k.columns {
		if wide || !column.wide {
			row = append(row, column.title)
		}
	}
	return append(row, "AGE")
}

// cells returns the row of an object, in the order of the headings.
func cells(k *kind, object proto.Message, without unusable, wide bool) []string {
	meta := metaOf(object)
	row := []string{meta.GetName()}
	if !k.observed {
		row = append(row, without.ready(k, object))
	}
	for _, column := range k.columns {
		if wide || !column.wide {
			row = append(row, orDash(column.value(object)))
		}
	}
	return append(row, age(meta, time.Now()))
}

func document(to io.Writer, k *kind, objects []proto.Message, single bool, format string) error {
	items := make([]map[string]any, len(objects))
	for i, object := range objects {
		item, err := item(k, object, format)
		if err != nil {
			return err
		}
		items[i] = item
	}
	return encodeItems(to, items, single, format)
}

// item returns an object in the form of a format: YAML has resources, which `apply` and kubectl read, and JSON the API's
// messages.
func item(k *kind, object proto.Message, format string) (map[string]any, error) {
	switch {
	case format == "name":
		return map[string]any{referenceKey: k.name + "/" + metaOf(object).GetName()}, nil
	case format != "yaml":
		return plain(k, object)
	case k.observed:
		return session(k, object)
	}
	return convert.Write(object)
}

// session returns an object for which no resource exists, in the form of one.
func session(k *kind, object proto.Message) (map[string]any, error) {
	shown, err := plain(k, object)
	if err != nil {
		return nil, err
	}
	meta, _ := shown["meta"].(map[string]any)
	meta["creationTimestamp"] = meta["createTime"]
	delete(meta, "createTime")
	delete(shown, "meta")
	shown["apiVersion"], shown["metadata"] = convert.APIVersion, meta
	return shown, nil
}

// encodeItems writes a List, or the single item if the caller named it.
func encodeItems(to io.Writer, items []map[string]any, single bool, format string) error {
	version := listVersion
	if format != "yaml" {
		version = apiVersion
	}
	var shown any = map[string]any{"apiVersion": version, "kind": "List", "items": items}
	if single && len(items) == 1 {
		shown = items[0]
	}
	return encode(to, shown, format)
}

// messages writes the API's messages as YAML. A resource does not have each field of their status.
func messages(to io.Writer, k *kind, objects []proto.Message) error {
	items := make([]map[string]any, len(objects))
	for i, object := range objects {
		item, err := plain(k, object)
		if err != nil {
			return err
		}
		items[i] = item
	}
	return encode(to, map[string]any{"apiVersion": apiVersion, "kind": "List", "items": items}, "yaml")
}

// encode writes a value in a format for programs.
func encode(to io.Writer, shown any, format string) error {
	switch {
	case format == "name":
		return writeNames(to, shown)
	case strings.HasPrefix(format, pathFormat):
		return writePath(to, shown, format)
	}
	text, err := json.MarshalIndent(shown, "", "  ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	}
	_, err = fmt.Fprintln(to, string(text))
	return err
}

// plain converts an object to maps, with apiVersion and kind.
func plain(k *kind, object proto.Message) (map[string]any, error) {
	shown := map[string]any{"apiVersion": apiVersion, "kind": k.message}
	return shown, asMap(object, shown)
}

// metaOf returns the metadata of an object.
func metaOf(object proto.Message) *pb.ObjectMeta {
	reflected := object.ProtoReflect()
	field := reflected.Descriptor().Fields().ByName("meta")
	meta, _ := reflected.Get(field).Message().Interface().(*pb.ObjectMeta)
	return meta
}

// describe shows an object for people: its parts as YAML, its conditions as sentences.
func describe(to io.Writer, k *kind, object proto.Message) error {
	shown, err := plain(k, object)
	if err != nil {
		return err
	}
	delete(shown, "apiVersion")
	text, err := yaml.Marshal(shown)
	if err != nil {
		return err
	}
	if _, err := to.Write(text); err != nil {
		return err
	}
	for _, condition := range conditionsOf(object) {
		_, _ = fmt.Fprintf(to, "%s is %s since %s: %s\n", condition.GetType(),
			word(condition.GetStatus(), "CONDITION_STATUS_"),
			condition.GetLastTransitionTime().AsTime().Format(time.RFC3339), condition.GetMessage())
	}
	return nil
}

func conditionsOf(object proto.Message) []*pb.Condition {
	reflected := object.ProtoReflect()
	status := reflected.Descriptor().Fields().ByName("status")
	if status == nil || !reflected.Has(status) {
		return nil
	}
	inner := reflected.Get(status).Message()
	field := inner.Descriptor().Fields().ByName("conditions")
	if field == nil {
		return nil
	}
	var conditions []*pb.Condition
	list := inner.Get(field).List()
	for i := range list.Len() {
		if condition, ok := list.Get(i).Message().Interface().(*pb.Condition); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}
