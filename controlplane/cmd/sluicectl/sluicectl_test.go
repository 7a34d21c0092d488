package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// fieldNamed finds a field of a message, or nil.
func fieldNamed(m proto.Message, name string) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
}

func TestEveryKindHasTheShapeThatCallsRelyOn(t *testing.T) {
	for _, k := range kinds {
		verbs := map[string]string{"Get": k.message, "List": k.messages, "Watch": k.messages}
		if !k.observed {
			verbs["Create"], verbs["Update"], verbs["Delete"] = k.message, k.message, k.message
		}
		for verb, noun := range verbs {
			for _, part := range []string{"Request", "Response"} {
				if _, err := message(verb + noun + part); err != nil {
					t.Error(err)
				}
			}
		}
		service, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(api + k.message + "Service"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := service.(protoreflect.ServiceDescriptor); !ok {
			t.Errorf("%s is no service", service.FullName())
		}
		response, _ := message("Get" + k.message + "Response")
		if fieldNamed(response, k.field) == nil {
			t.Errorf("%s has no field %s", k.message, k.field)
		}
		list, _ := message("List" + k.messages + "Response")
		if fieldNamed(list, k.fields) == nil {
			t.Errorf("the list of %s has no field %s", k.message, k.fields)
		}
		object, err := message(k.message)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range k.columns {
			column.value(object) // must not panic where nothing is set
		}
	}
}

func TestPrintedObjectsCanBeApplied(t *testing.T) {
	volume := &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders", Labels: map[string]string{"app": "shop"}},
		Spec:   &pb.VolumeSpec{Pool: "p", SizeBytes: 1 << 40, WriteCache: pb.WriteCache_WRITE_CACHE_ENABLED},
		Status: &pb.VolumeStatus{Naa: "3abc", Epoch: 7}}
	for _, format := range []string{"yaml", "json"} {
		var printed strings.Builder
		g := &globals{output: format}
		if err := g.print(&printed, kinds[0], nil, nil, false); err != nil {
			t.Fatal(err)
		}
		printed.Reset()
		if err := document(&printed, kinds[0], []proto.Message{volume, volume}, false, format); err != nil {
			t.Fatal(err)
		}
		read, err := readObjects("-", strings.NewReader(printed.String()))
		if err != nil || len(read) != 2 {
			t.Fatalf("%s: %v\n%s", format, err, printed.String())
		}
		got := read[0].message.(*pb.Volume)
		if got.GetSpec().GetSizeBytes() != 1<<40 || got.GetMeta().GetLabels()["app"] != "shop" || got.GetStatus() != nil {
			t.Fatalf("%v", got)
		}
	}
}

func TestAMisspeltFieldIsRefused(t *testing.T) {
	text := "apiVersion: sluice.dev/v1\nkind: Volume\nmeta: {name: a}\nspec: {pool: p, sizeByte: 5}\n"
	if _, err := readObjects("-", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "sizeByte") {
		t.Fatalf("%v", err)
	}
}

func TestAFileOfSomethingElseIsRefused(t *testing.T) {
	for text, word := range map[string]string{
		"apiVersion: v1\nkind: Pod\n":               "apiVersion",
		"apiVersion: sluice.dev/v1\nkind: Vulome\n": "Vulome",
		"apiVersion: sluice.dev/v1\nkind: Volume\n": "meta.name",
		"{": "document 1",
		"---\n---\napiVersion: sluice.dev/v2\nkind: V\n": "sluice.dev/v2",
	} {
		if _, err := readObjects("-", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLunPortalAndLinkAreReadAsWritten(t *testing.T) {
	lun, err := readLun("3=orders,ro")
	if err != nil || lun.GetId() != 3 || lun.GetVolume() != "orders" || !lun.GetReadOnly() {
		t.Errorf("%v, %v", lun, err)
	}
	portal, err := readPortal("fabric=red,listen=[::1]:3260,switch=s1")
	if err != nil || portal.GetFabric() != "red" || portal.GetListen() != "[::1]:3260" || portal.GetSwitch() != "s1" {
		t.Errorf("%v, %v", portal, err)
	}
	link, err := readLink("a:b=4")
	if err != nil || link.GetA() != "a" || link.GetB() != "b" || link.GetCost() != 4 {
		t.Errorf("%v, %v", link, err)
	}
	for _, bad := range []string{"", "x=orders", "3", "3="} {
		if _, err := readLun(bad); exitCode(err) != exitUsage {
			t.Errorf("--lun %q: %v", bad, err)
		}
	}
	if _, err := readPortal("fabric=red,lisen=x"); exitCode(err) != exitUsage {
		t.Error(err)
	}
	if _, err := readLink("a"); exitCode(err) != exitUsage {
		t.Error(err)
	}
}

func TestWrongUseEndsWithItsOwnExitCode(t *testing.T) {
	for line, want := range map[string]int{
		"frobnicate":              exitUsage,
		"volume get-all":          exitUsage,
		"volume describe":         exitUsage,
		"volume describe a b":     exitUsage,
		"volume delete":           exitUsage,
		"volume create x":         exitUsage,
		"volume list --sort=size": exitUsage,
		"volume create x --pool p --size 1Gi --retain --trash":                 exitUsage,
		"volume create x --pool p --size 1Gi --from-image a --from-snapshot b": exitUsage,
		"volume create x --pool p --size much":                                 exitUsage,
		"pool create x":                                                        exitUsage,
		"completion bash more":                                                 exitUsage,
		"--server 127.0.0.1:1 --insecure volume list --timeout=2s":             exitNotReachable,
		"volume --help":                                                        exitDone,
		"volume":                                                               exitDone,
		"completion bash":                                                      exitDone,
	} {
		root := newRoot("sluicectl")
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(strings.Fields(line))
		err := execute(t.Context(), root)
		if got := exitCode(err); got != want {
			t.Errorf("%s: exit code %d, wanted %d: %v", line, got, want, err)
		}
		var usage *usageError
		if errors.As(err, &usage) && line != "volume create x --pool p --size much" && !strings.Contains(err.Error(), "--help`") {
			t.Errorf("%s: no word of help: %v", line, err)
		}
	}
}
