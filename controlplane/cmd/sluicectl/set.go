package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"sluice.dev/sluice/operator/convert"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// fieldPath leads from an object to a field, through messages.
type fieldPath []protoreflect.FieldDescriptor

// pathOf finds a field by its name in JSON, as in spec.sizeBytes; nil: the message has no such field.
func pathOf(message protoreflect.MessageDescriptor, name string) fieldPath {
	var path fieldPath
	for part := range strings.SplitSeq(name, ".") {
		if message == nil {
			return nil
		}
		field := message.Fields().ByJSONName(part)
		if field == nil {
			return nil
		}
		path, message = append(path, field), field.Message()
	}
	return path
}

func (p fieldPath) last() protoreflect.FieldDescriptor { return p[len(p)-1] }

// mask is the path as an update mask names it.
func (p fieldPath) mask() string {
	var names []string
	for _, field := range p {
		names = append(names, string(field.Name()))
	}
	return strings.Join(names, ".")
}

func (p fieldPath) String() string {
	var names []string
	for _, field := range p {
		names = append(names, field.JSONName())
	}
	return strings.Join(names, ".")
}

// immutable reports whether the API's definition says that the field, or a message that holds it, cannot change.
func (p fieldPath) immutable() bool {
	return slices.ContainsFunc(p, func(field protoreflect.FieldDescriptor) bool {
		behaviors, _ := proto.GetExtension(field.Options(), annotations.E_FieldBehavior).([]annotations.FieldBehavior)
		return slices.Contains(behaviors, annotations.FieldBehavior_IMMUTABLE)
	})
}

// take copies the field from one object to another, and returns the change as text; empty: the field has that value.
func (p fieldPath) take(to, from protoreflect.Message) (string, error) {
	for _, field := range p[:len(p)-1] {
		if of := field.ContainingOneof(); of != nil {
			if have := to.WhichOneof(of); have != nil && have != field {
				return "", usagef("%s: the object has %s instead, which cannot change", p, have.JSONName())
			}
		}
		to, from = to.Mutable(field).Message(), from.Get(field).Message()
	}
	field := p.last()
	before, after := to.Get(field), from.Get(field)
	if before.Equal(after) {
		return "", nil
	}
	text := p.describe(before, after)
	if from.Has(field) {
		to.Set(field, after)
	} else {
		to.Clear(field)
	}
	return text, nil
}

// describe returns a change as text. It shows no secret, and no list of messages, which would fill a screen.
func (p fieldPath) describe(before, after protoreflect.Value) string {
	options, _ := p.last().Options().(*descriptorpb.FieldOptions)
	if proto.GetExtension(options, pb.E_Secret).(bool) || p.last().Message() != nil {
		return p.String()
	}
	return fmt.Sprintf("%s from %s to %s", p, p.text(before), p.text(after))
}

func (p fieldPath) text(value protoreflect.Value) string {
	field := p.last()
	if field.IsList() {
		var all []string
		for i := range value.List().Len() {
			all = append(all, value.List().Get(i).String())
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	if field.Enum() != nil {
		return convert.WordOf(field.Enum().Values().ByNumber(value.Enum()))
	}
	return value.String()
}

// settable returns the fields that the flags of `set` change, by flag: those of `create` that are not immutable, and that no other
// command of the kind changes.
func (k *kind) settable() map[string]fieldPath {
	object, err := message(k.message)
	if err != nil {
		panic(err)
	}
	fields := map[string]fieldPath{}
	for flag, name := range flagFields[k.name] {
		path := pathOf(object.ProtoReflect().Descriptor(), name)
		if path != nil && !path.immutable() && !slices.Contains(k.apart, flag) {
			fields[flag] = path
		}
	}
	return fields
}

// optional returns a flag of `create` for `set`, where it is not required, and a default has no meaning.
func optional(flag *pflag.Flag) *pflag.Flag {
	same := *flag
	same.Annotations = nil
	if zero, scalar := map[string]string{"int32": "0", "int64": "0", "string": "", "bool": "false"}[flag.Value.Type()]; scalar {
		if err := same.Value.Set(zero); err != nil {
			panic(err)
		}
		same.DefValue = zero
	}
	return &same
}

func setCommand(k *kind, g *globals) *cobra.Command {
	source := &cobra.Command{}
	build := k.create(source)
	command := &cobra.Command{
		Use: "set NAME", Short: "Change fields of a " + k.message, Args: cobra.ExactArgs(1),
		Long: "Change fields of a " + k.message + ". Fields without a flag remain as they are. A flag that can be repeated replaces the whole " +
			"list. Without any change the command prints \"unchanged\".",
		ValidArgsFunction: k.completeNames(g),
	}
	fields, names, setters := k.settable(), []string{}, map[string][]string{}
	source.Flags().VisitAll(func(flag *pflag.Flag) {
		if path, can := fields[flag.Name]; can {
			command.Flags().AddFlag(optional(flag))
			names, setters[path.mask()] = append(names, flag.Name), append(setters[path.mask()], flag.Name)
		}
	})
	command.MarkFlagsOneRequired(names...)
	for _, flags := range setters {
		if len(flags) > 1 {
			command.MarkFlagsMutuallyExclusive(flags...)
		}
	}
	waits := ""
	if k.unset != nil {
		waits = "wait until the change has its effect"
	}
	return modifyCommand(k, g, command, waits, func([]string) (modification, error) {
		wanted, err := build(&pb.ObjectMeta{})
		if err != nil {
			return modification{}, err
		}
		m := modification{missing: k.unset}
		var paths []fieldPath
		for _, flag := range names {
			if command.Flags().Changed(flag) {
				paths, m.fields = append(paths, fields[flag]), append(m.fields, fields[flag].mask())
			}
		}
		m.apply = func(object proto.Message) ([]string, error) {
			var changes []string
			for _, path := range paths {
				change, err := path.take(object.ProtoReflect(), wanted.ProtoReflect())
				if err != nil {
					return nil, err
				}
				if change != "" {
					changes = append(changes, change)
				}
			}
			return changes, nil
		}
		return m, nil
	})
}
