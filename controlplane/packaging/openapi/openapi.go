// Openapi FILE completes the OpenAPI document of protoc-gen-openapi, which knows neither the limits of protovalidate, nor streams, nor maps in
// a query (controlplane/decisions/api-and-client.md). `make generate` runs it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"go.yaml.in/yaml/v3"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "sluice.dev/sluice/proto/sluice/v1" // its protocols
)

const about = `The API of a Sluice system as REST. The same services answer gRPC, gRPC-Web and Connect. An error has a google.rpc.Status as its body;
details of the type google.rpc.BadRequest name the fields. 64-bit integers are strings, as in all JSON of protocol buffers.`

func main() {
	if err := complete(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func complete(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	root := &yaml.Node{}
	if err := yaml.Unmarshal(text, root); err != nil {
		return err
	}
	document := root.Content[0]
	set(at(document, "info"), "description", about)
	joinLines(document)
	mergePaths(at(document, "paths"))
	protoregistry.GlobalFiles.RangeFilesByPackage("sluice.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				addMethod(document, file.Services().Get(i).Methods().Get(j))
			}
		}
		for i := range file.Messages().Len() {
			addLimits(at(document, "components", "schemas", string(file.Messages().Get(i).Name()), "properties"), file.Messages().Get(i))
		}
		return true
	})
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // a source file
}

// at returns the value below these keys; nil: there is none.
func at(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		for i := 0; node != nil && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				next = node.Content[i+1]
			}
		}
		node = next
	}
	return node
}

// set adds a key with a value.
func set(node *yaml.Node, key string, value any) {
	var name, encoded yaml.Node
	if err := name.Encode(key); err != nil {
		panic(err)
	}
	if err := encoded.Encode(value); err != nil {
		panic(err)
	}
	node.Content = append(node.Content, &name, &encoded)
}

// joinLines removes the space with which each line of a comment but the first begins.
func joinLines(node *yaml.Node) {
	node.Value = strings.ReplaceAll(node.Value, "\n ", "\n")
	for _, child := range node.Content {
		joinLines(child)
	}
}

// objectName is the variable of an update: `{volume.meta.name}` names the same part of a path as `{name}` of the other methods.
var objectName = regexp.MustCompile(`\{(\w+\.meta\.name)\}$`)

// mergePaths moves each update to the path of the other methods. OpenAPI forbids two paths that differ only in the name of a variable.
func mergePaths(paths *yaml.Node) {
	for i := 0; i < len(paths.Content); {
		path := paths.Content[i].Value
		found := objectName.FindStringSubmatch(path)
		same := at(paths, objectName.ReplaceAllString(path, "{name}"))
		if found == nil || same == nil {
			i += 2
			continue
		}
		for _, parameter := range at(paths.Content[i+1], "patch", "parameters").Content {
			if name := at(parameter, "name"); name.Value == found[1] {
				name.Value = "name"
			}
		}
		same.Content = append(same.Content, paths.Content[i+1].Content...)
		paths.Content = slices.Delete(paths.Content, i, i+2)
	}
}

// addMethod completes the operation of a GET rule: the media type of a stream, and the maps of its query.
func addMethod(document *yaml.Node, method protoreflect.MethodDescriptor) {
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	operation := at(document, "paths", rule.GetGet(), "get")
	if operation == nil {
		return
	}
	if method.IsStreamingServer() {
		success := at(operation, "responses", "200")
		at(success, "description").Value = `One line of JSON for each message. A stream that fails after its first message ends with a line {"error": Status}.`
		at(success, "content").Content[0].Value = "application/x-ndjson"
	}
	options := method.Input().Fields().ByName("options")
	if options == nil {
		return
	}
	if selector := options.Message().Fields().ByName("label_selector"); selector != nil {
		parameters := at(operation, "parameters")
		var added yaml.Node
		if err := added.Encode(map[string]any{
			"name": "options.labelSelector", "in": "query", "style": "deepObject", "explode": true,
			"description": "Labels that the objects have, at most 64, as in options.labelSelector[app]=db.",
			"schema":      map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
		}); err != nil {
			panic(err)
		}
		parameters.Content = append(parameters.Content, &added)
	}
}

// addLimits adds the rules of a message's fields that a schema can state. 64-bit integers are strings in JSON, whose range no schema states;
// their descriptions do.
func addLimits(properties *yaml.Node, message protoreflect.MessageDescriptor) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		schema := at(properties, field.JSONName())
		rules, _ := proto.GetExtension(field.Options(), validate.E_Field).(*validate.FieldRules)
		if schema == nil || rules == nil {
			continue
		}
		addString(schema, rules.GetString())
		if number := rules.GetInt32(); number != nil {
			addRange(schema, number.ProtoReflect())
		}
		if number := rules.GetUint32(); number != nil {
			addRange(schema, number.ProtoReflect())
		}
		if list := rules.GetRepeated(); list != nil {
			set64(schema, "minItems", list.MinItems)
			set64(schema, "maxItems", list.MaxItems)
			addString(at(schema, "items"), list.GetItems().GetString())
		}
		if pairs := rules.GetMap(); pairs != nil {
			set64(schema, "maxProperties", pairs.MaxPairs)
		}
	}
}

func addString(schema *yaml.Node, rules *validate.StringRules) {
	if schema == nil || rules == nil {
		return
	}
	set64(schema, "minLength", rules.MinLen)
	set64(schema, "maxLength", rules.MaxLen)
	if rules.Pattern != nil {
		set(schema, "pattern", rules.GetPattern())
	}
	if len(rules.GetIn()) > 0 {
		set(schema, "enum", rules.GetIn())
	}
}

func set64(schema *yaml.Node, key string, value *uint64) {
	if value != nil {
		set(schema, key, *value)
	}
}

// addRange adds the rules gte and lte of a number.
func addRange(schema *yaml.Node, rules protoreflect.Message) {
	for _, limit := range []struct {
		rule protoreflect.Name
		key  string
	}{{"gte", "minimum"}, {"lte", "maximum"}} {
		if field := rules.Descriptor().Fields().ByName(limit.rule); rules.Has(field) {
			set(schema, limit.key, rules.Get(field).Interface())
		}
	}
}
