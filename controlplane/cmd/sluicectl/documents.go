package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	apiyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/operator/convert"
)

// documents has the contents of the files of one `apply`.
type documents struct {
	all []oneDocument
	// secrets has the values of Secrets by namespace, name and key.
	secrets map[convert.SecretKey]string
	// notes are for standard error, each once.
	notes []string
}

// oneDocument is one object of a file.
type oneDocument struct {
	// at names file and document in errors.
	at  string
	raw []byte
}

// head has the fields that distinguish the formats of documents.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// readObjects reads the objects of one file.
func readObjects(file string, standardInput io.Reader) ([]described, error) {
	read := documents{}
	if err := read.add(file, standardInput); err != nil {
		return nil, err
	}
	return read.objects()
}

// add reads a file. A file without objects is refused, because another one was probably meant. An empty List is accepted, because
// `-o yaml` prints one if there are no objects.
func (d *documents) add(file string, standardInput io.Reader) error {
	from := standardInput
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return &usageError{err}
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	reader := apiyaml.NewYAMLReader(bufio.NewReader(from))
	empty := true
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) && empty {
			return usagef("%s describes no object", file)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &usageError{err}
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict(text) // else only the last value of a repeated key would have an effect
		if err == nil {
			empty = empty && string(raw) == "null"
			err = d.split(fmt.Sprintf("document %d", number), raw)
		}
		if err != nil {
			return usagef("document %d: %w", number, err)
		}
	}
}

// split adds an object, or the objects of a List.
func (d *documents) split(at string, raw []byte) error {
	var head head
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	switch {
	case string(raw) == "null":
	case head.Kind == "List":
		if head.APIVersion == apiVersion {
			d.note(deprecated)
		} else if head.APIVersion != listVersion && head.APIVersion != convert.APIVersion {
			return foreign(head)
		}
		for _, item := range head.Items {
			if err := d.split(at, item); err != nil {
				return err
			}
		}
	case head.APIVersion == "v1" && head.Kind == "Secret":
		return d.secret(raw)
	default:
		d.all = append(d.all, oneDocument{at, raw})
	}
	return nil
}

// deprecated is the note on files in the format in which earlier releases of sluicectl printed objects.
const deprecated = "apiVersion " + apiVersion + " with meta is deprecated: write apiVersion sluice.dev/v1alpha1 with metadata, as `-o yaml` prints"

// note adds a note, once.
func (d *documents) note(text string) {
	for _, known := range d.notes {
		if known == text {
			return
		}
	}
	d.notes = append(d.notes, text)
}

// report prints the notes.
func (d *documents) report(command *cobra.Command) {
	for _, note := range d.notes {
		_, _ = fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
}

func foreign(head head) error {
	return fmt.Errorf("apiVersion is %q, not %q: a %s is not an object of Sluice. Objects of Kubernetes are for kubectl", head.APIVersion,
		convert.APIVersion, head.Kind)
}

// secret stores the values of a Kubernetes Secret.
func (d *documents) secret(raw []byte) error {
	var secret struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
		Data       map[string][]byte `json:"data"`
		StringData map[string]string `json:"stringData"`
	}
	if err := json.Unmarshal(raw, &secret); err != nil {
		return err
	}
	if d.secrets == nil {
		d.secrets = map[convert.SecretKey]string{}
	}
	key := convert.SecretKey{Namespace: secret.Metadata.Namespace, Name: secret.Metadata.Name}
	for name, value := range secret.Data {
		key.Key = name
		d.secrets[key] = string(value)
	}
	for name, value := range secret.StringData {
		key.Key = name
		d.secrets[key] = value
	}
	return nil
}

// read returns the value that a field refers to.
func (d *documents) read(field string, ref convert.SecretKey) (string, error) {
	value, has := d.secrets[ref]
	if !has {
		return "", fmt.Errorf("%s names the key %q of the Secret %s, which no file has: add the Secret by another -f, or leave the reference "+
			"out to keep the secret that the control plane has", field, ref.Key, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
	}
	return value, nil
}

// objects returns the objects of all documents, in the order of the files.
func (d *documents) objects() ([]described, error) {
	var all []described
	for _, document := range d.all {
		object, err := d.object(document.raw)
		if err != nil {
			return nil, usagef("%s: %w", document.at, err)
		}
		all = append(all, object)
	}
	return all, nil
}

func (d *documents) object(raw []byte) (described, error) {
	var head head
	if err := json.Unmarshal(raw, &head); err != nil {
		return described{}, err
	}
	if head.APIVersion != apiVersion && head.APIVersion != convert.APIVersion {
		return described{}, foreign(head)
	}
	if err := checkName(raw); err != nil {
		return described{}, err
	}
	k := kindNamed(head.Kind)
	switch {
	case k == nil || k.message != head.Kind:
		return described{}, fmt.Errorf("there is no kind %q", head.Kind)
	case k.observed:
		return described{}, fmt.Errorf("a %s is made by the control plane; it cannot be applied", k.message)
	case head.APIVersion == apiVersion:
		d.note(deprecated)
		object, err := readMessage(k, raw)
		return described{k, object}, err
	}
	object, unused, err := convert.Read(raw, d.read)
	if err != nil {
		return described{}, fmt.Errorf("%s: %w", k.message, err)
	}
	if len(unused) > 0 {
		d.note(fmt.Sprintf("%s %s: only the operator uses %s", k.name, metaOf(object).GetName(), strings.Join(unused, ", ")))
	}
	return described{k, object}, nil
}

// checkName refuses a name that YAML does not read as text.
func checkName(raw []byte) error {
	var named struct {
		Metadata, Meta struct {
			Name json.RawMessage `json:"name"`
		}
	}
	if json.Unmarshal(raw, &named) != nil {
		return nil // the error is reported with the field
	}
	for field, name := range map[string]json.RawMessage{"metadata.name": named.Metadata.Name, "meta.name": named.Meta.Name} {
		if len(name) > 0 && name[0] != '"' && string(name) != "null" {
			return fmt.Errorf("%s is read as %s: YAML takes y, n, yes, no, on, off and numbers for other types than text. Write it in quotes", field, name)
		}
	}
	return nil
}

// readMessage reads an object in the deprecated format, which is that of the API's messages. It refuses fields that the kind does
// not have, because a misspelled field would have no effect.
func readMessage(k *kind, raw []byte) (proto.Message, error) {
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
