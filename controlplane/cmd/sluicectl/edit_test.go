package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/proto/client"
)

// editor makes a shell script the editor. In it, $1 is the file, and $n the number of the call, from 1. It returns the folder of the
// temporary files.
func editor(t *testing.T, script string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	counter := filepath.Join(t.TempDir(), "calls")
	text := "#!/bin/sh\nset -e\necho >>" + counter + "\nn=$(wc -l <" + counter + ")\n" + script + "\n"
	name := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", name)
	t.Setenv("TMPDIR", folder)
	return folder
}

// left returns the temporary files that a command has left.
func left(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnEditedObjectIsStored(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	folder := editor(t, `head -1 "$1" | grep -q "^# Lines that begin"; grep -q "^apiVersion: sluice.dev/v1alpha1" "$1"; sed -i "s/size: .*/size: 2Gi/" "$1"`)
	if out := l.must("edit", "volume", "orders"); out != "volume orders updated\n" {
		t.Error(out)
	}
	if volume, err := l.Volumes.Get(t.Context(), "orders"); err != nil || volume.Spec.SizeBytes != 2<<30 {
		t.Errorf("%+v, %v", volume, err)
	}
	if files := left(t, folder); len(files) != 0 {
		t.Errorf("%q are left", files)
	}
}

func TestVisualHasPriorityAndMayHaveArguments(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "red")
	editor(t, "exit 1")
	t.Setenv("VISUAL", "sed -i -e s/red/blue/")
	if _, err := l.run("edit", "fabric", "red"); err == nil { // the next call of sed changes nothing
		t.Error("another name was accepted")
	} else if !strings.Contains(err.Error(), "kind and name cannot change") {
		t.Error(err)
	}
}

func TestAnUnchangedTextChangesNothing(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "red")
	before := l.revision()
	for _, script := range []string{":", `sed -i "s/^# .*/# another comment/" "$1"`, `: >"$1"`, `echo >>"$1"`} {
		folder := editor(t, script)
		if out := l.must("edit", "fabric", "red"); out != "fabric red unchanged\n" {
			t.Errorf("%s: %s", script, out)
		}
		if files := left(t, folder); len(files) != 0 {
			t.Errorf("%q are left", files)
		}
	}
	if after := l.revision(); after != before {
		t.Errorf("something was stored: revision %d, it was %d", after, before)
	}
}

func TestAfterAnErrorTheFileIsOpenedAgainWithTheErrorAsComment(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	editor(t, `case $n in
1) sed -i "s/size: .*/size: 1Mi/" "$1" ;;
2) grep -q "^# error: spec.sizeBytes: is 1048576" "$1"; sed -i "s/size: .*/siez: 2Gi/" "$1" ;;
3) grep -q "^# error: .*siez" "$1"; sed -i "s/siez: .*/size: 2Gi/" "$1" ;;
esac`)
	if out := l.must("edit", "volume", "orders"); out != "volume orders updated\n" {
		t.Error(out)
	}
}

func TestATextThatRemainsWrongEndsTheEditAndIsKept(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	folder := editor(t, `[ $n -gt 1 ] || sed -i "s/size: .*/size: 1Mi/" "$1"`)
	output, err := l.errorsOf("edit", "volume", "orders")
	files := left(t, folder)
	if exitCode(err) != exitUsage || len(files) != 1 || !strings.Contains(output, "the text is kept in "+files[0]) {
		t.Errorf("%v: %s: %q", err, output, files)
	}
}

func TestAnEditOfAnObjectThatAnotherUserChangedIsNotStored(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	folder := editor(t, `sed -i "s/size: .*/size: 2Gi/" "$1"`)
	g := &globals{insecure: true, server: l.address}
	connection, err := client.Connect(client.Options{Endpoints: []string{l.address}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	object, err := volumeKind.get(t.Context(), connection, "orders")
	if err != nil {
		t.Fatal(err)
	}
	l.must("volume", "set", "orders", "--iops", "5")
	command := &cobra.Command{Use: "edit"}
	command.SetContext(t.Context())
	command.SetIn(strings.NewReader(""))
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	err = (&editing{g: g, command: command, kind: volumeKind, object: object}).run()
	if exitCode(err) != exitConflict || len(left(t, folder)) != 1 {
		t.Errorf("%v; %q are left", err, left(t, folder))
	}
}

func TestAnEditorThatFailsIsNamed(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "red")
	folder := editor(t, "exit 3")
	if _, err := l.run("edit", "fabric", "red"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "exit status 3; set VISUAL or EDITOR") {
		t.Error(err)
	}
	if files := left(t, folder); len(files) != 0 {
		t.Errorf("%q are left", files)
	}
	for command, code := range map[string]int{"edit fabric none": exitNotFound, "edit session s": exitUsage, "edit fabric": exitUsage} {
		if _, err := l.run(strings.Fields(command)...); exitCode(err) != code {
			t.Errorf("%s: %v", command, err)
		}
	}
}
