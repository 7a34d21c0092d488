// Package manual writes the manual pages of a program, and its page of the documentation site, from its commands. Only tests import it,
// so no program contains it.
package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

const (
	// directoryVariable names the directory that .ci/packaging/build wants the pages in. Without it they are written to a temporary one.
	directoryVariable = "SLUICE_WRITE_MANUAL"
	// referenceVariable names the directory that .ci/docs/build wants the page of the site in.
	referenceVariable = "SLUICE_WRITE_REFERENCE"
)

// Test writes the pages of a program, of which newRoot makes the commands, and fails if a command, a flag or a line of help is in no page.
// The section is 1 for programs of users, 8 for those of administrators.
func Test(t *testing.T, newRoot func() *cobra.Command, section string) {
	t.Helper()
	directory := os.Getenv(directoryVariable)
	if directory == "" {
		directory = t.TempDir()
	}
	write(t, newRoot(), section, directory)
	root := newRoot()
	root.InitDefaultCompletionCmd()
	reference := referenceOf(root)
	if directory := os.Getenv(referenceVariable); directory != "" {
		if err := os.WriteFile(filepath.Join(directory, root.Name()+".md"), []byte(reference), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range available(root) {
		command.InitDefaultHelpFlag()
		if !strings.Contains(reference, "\n## "+command.CommandPath()+"\n") || !strings.Contains(reference, command.LocalFlags().FlagUsages()) {
			t.Errorf("the reference has no section of %s with its flags", command.CommandPath())
		}
		name := strings.ReplaceAll(command.CommandPath(), " ", "-")
		text, err := os.ReadFile(filepath.Join(directory, name+"."+section))
		if err != nil {
			t.Error(err)
			continue
		}
		page := plain(string(text))
		if !strings.Contains(page, command.Short) {
			t.Errorf("%s: the page does not say %q", name, command.Short)
		}
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && !strings.Contains(page, "--"+flag.Name) {
				t.Errorf("%s: the page does not name --%s", name, flag.Name)
			}
			if !flag.Hidden && !strings.Contains(page, unquoted(flag.Usage)) {
				t.Errorf("%s: the page does not explain --%s as %q", name, flag.Name, flag.Usage)
			}
		})
		for _, line := range strings.Split(command.Long+"\n"+command.Example, "\n") {
			line = strings.TrimLeft(strings.Join(strings.Fields(line), " "), "# ") // a heading, in the help of Cobra's own commands
			if !strings.Contains(page, unquoted(line)) {
				t.Errorf("%s: the page does not say %q", name, line)
			}
		}
	}
}

func write(t *testing.T, root *cobra.Command, section, directory string) {
	t.Helper()
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true // it names the generator, and the day
	for _, command := range available(root) {
		command.Long = markdown(command.Long)
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) { flag.Usage = markdown(flag.Usage) })
	}
	header := &doc.GenManHeader{Section: section, Source: "Sluice " + root.Version, Manual: "Sluice"}
	if err := doc.GenManTree(root, header, directory); err != nil {
		t.Fatal(err)
	}
}

// markdown returns a text of the help as Markdown, in which an angle bracket would begin a tag. Indented lines are code, as in the help.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
			lines[i] = strings.ReplaceAll(line, "<", `\<`)
		}
	}
	return strings.Join(lines, "\n")
}

// available returns the command and all commands below it that its help shows.
func available(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			all = append(all, available(below)...)
		}
	}
	return all
}

// unquoted returns the text without backquotes: a page shows such words in bold.
func unquoted(text string) string { return strings.ReplaceAll(text, "`", "") }

// plain returns the text of a page without the escapes and fonts of roff, in one line.
func plain(page string) string {
	page = strings.NewReplacer(`\-`, "-", `\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\&`, "", `\(aq`, "'", `\\`, `\`, `\e`, `\`).Replace(page)
	return unquoted(strings.Join(strings.Fields(page), " "))
}
