package helpcheck_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/tests/defaults/helpcheck"
)

func TestABackquotedCommandIsNoNameOfAValue(t *testing.T) {
	root := &cobra.Command{Use: "root"}
	root.Flags().String("good", "", "a `duration`")
	root.Flags().String("bad", "", "see `sluicectl status`")
	if wrong := helpcheck.WrongFlags(root); len(wrong) != 1 || !strings.Contains(wrong[0], `--bad: the help shows "sluicectl status"`) {
		t.Errorf("found %q", wrong)
	}
}

func TestFlagsThatShareAVariableAreFound(t *testing.T) {
	root, below := &cobra.Command{Use: "root"}, &cobra.Command{Use: "below"}
	root.AddCommand(below)
	var size, other string
	root.Flags().StringVar(&other, "other", "5", "its own")
	below.Flags().StringVar(&size, "size", "1", "shared")
	if wrong := helpcheck.WrongFlags(root); len(wrong) != 0 {
		t.Errorf("found %q", wrong)
	}
	below.Flags().StringVar(&size, "length", "2", "shared")
	want := `root below --size: the help documents the default "1", and the program uses "2"`
	if wrong := helpcheck.WrongFlags(root); len(wrong) != 1 || wrong[0] != want {
		t.Errorf("found %q", wrong)
	}
}

func TestExamplesThatTheirCommandRefusesAreFound(t *testing.T) {
	newRoot := func() *cobra.Command {
		root := &cobra.Command{Use: "root"}
		run := func(*cobra.Command, []string) {}
		good := &cobra.Command{Use: "good", Run: run, Args: cobra.ExactArgs(1), Example: "  root good \\\n      x >file"}
		none := &cobra.Command{Use: "none", Run: run}
		arguments := &cobra.Command{Use: "arguments", Run: run, Args: cobra.NoArgs, Example: "  root arguments x"}
		flag := &cobra.Command{Use: "flag", Run: run, Example: "  root flag --unknown"}
		other := &cobra.Command{Use: "other", Run: run, Example: "  root none"}
		root.AddCommand(good, none, arguments, flag, other)
		return root
	}
	wrong, commands := helpcheck.WrongExamples(newRoot)
	if commands != 5 || len(wrong) != 4 {
		t.Fatalf("%d commands: %q", commands, wrong)
	}
	for i, part := range []string{"root arguments: the example", "unknown flag: --unknown", "root none has no example", "it calls root none of root"} {
		if !strings.Contains(wrong[i], part) {
			t.Errorf("%q misses %q", wrong[i], part)
		}
	}
}
