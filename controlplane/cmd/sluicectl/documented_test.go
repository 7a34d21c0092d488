package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// root of the source tree.
const sourceTree = "../../.."

// commandLine is a call of sluicectl in backquotes or quotation marks, or on a line of its own in a block of commands or a script.
var commandLine = regexp.MustCompile("(?m)`sluicectl ([^`]+)`|\"sluicectl ([^`\"\n]+)\"|^\\s*(?:[A-Z_]+=\\S+ )*(?:\\$root/|\\S*build/bin/)?sluicectl ([^\n`]+)$")

// calls returns the arguments of every call of sluicectl that a text names.
func calls(text string) [][]string {
	var all [][]string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, found := range commandLine.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(found[1] + found[2] + found[3])
		end := slices.IndexFunc(words, func(word string) bool {
			return strings.HasPrefix(word, "#") || strings.ContainsAny(word, "|>&;\"%…") || strings.Contains(word, "...")
		})
		if end >= 0 {
			words = words[:end]
		}
		all = append(all, words)
	}
	return all
}

// unknown returns the first word of a call that sluicectl does not know: a command or a flag. Empty: it knows all.
func unknown(words []string) string {
	root := newRoot("sluicectl")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	if words[0] == "KIND" { // each kind has the command
		words = append([]string{kinds[0].name}, words[1:]...)
	}
	command, rest, err := root.Find(words)
	if err != nil {
		return words[0]
	}
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return rest[0]
	}
	command.InitDefaultHelpFlag()
	for _, word := range words {
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "-") && flag != "-" && !hasFlag(command, strings.TrimRight(flag, "`,.:)'")) {
			return word
		}
	}
	return ""
}

func hasFlag(command *cobra.Command, word string) bool {
	if name, long := strings.CutPrefix(word, "--"); long {
		return command.Flags().Lookup(name) != nil || command.InheritedFlags().Lookup(name) != nil
	}
	name := word[1:2]
	return command.Flags().ShorthandLookup(name) != nil || command.InheritedFlags().ShorthandLookup(name) != nil
}

func TestEveryCallOfSluicectlThatAPageOrAMessageNamesExists(t *testing.T) {
	found := 0
	err := filepath.WalkDir(sourceTree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != sourceTree && (strings.HasPrefix(name, ".") || name == "build" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".md", ".go", ".h", ".cc", ".proto", ".yaml", ".tpl", ".txt":
		default:
			return nil
		}
		if strings.HasSuffix(path, ".pb.go") || entry.Name() == "documented_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, words := range calls(string(text)) {
			found++
			if len(words) == 0 {
				continue
			}
			if word := unknown(words); word != "" {
				t.Errorf("%s: sluicectl %s: there is no %s", strings.TrimPrefix(path, sourceTree+"/"), strings.Join(words, " "), word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("only %d calls were found", found)
	}
}

func TestACallOfAnUnknownCommandOrFlagIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"run `sluicectl volume list -o json`":                         "",
		"run `sluicectl session banish --host h`":                     "banish",
		"run `sluicectl session evict --guest h`":                     "--guest",
		"    sluicectl volume create v --sise 1Gi \\\n      --pool p": "--sise",
		"sluicectl volumes get v -x":                                  "-x",
		"`sluicectl invent`":                                          "invent",
		"in quotation marks: \"sluicectl restore undo\"":              "undo",
	} {
		all := calls(text)
		if len(all) != 1 {
			t.Errorf("%q: %v", text, all)
		} else if word := unknown(all[0]); word != want {
			t.Errorf("%q: %q is unknown, and not %q", text, word, want)
		}
	}
}
