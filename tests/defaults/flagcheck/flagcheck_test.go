package flagcheck_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/tests/defaults/flagcheck"
)

func TestABackquotedCommandIsNoNameOfAValue(t *testing.T) {
	root := &cobra.Command{Use: "root"}
	root.Flags().String("good", "", "a `duration`")
	root.Flags().String("bad", "", "see `sluicectl status`")
	if wrong := flagcheck.Wrong(root); len(wrong) != 1 || !strings.Contains(wrong[0], `--bad: the help shows "sluicectl status"`) {
		t.Errorf("found %q", wrong)
	}
}

func TestFlagsThatShareAVariableAreFound(t *testing.T) {
	root, below := &cobra.Command{Use: "root"}, &cobra.Command{Use: "below"}
	root.AddCommand(below)
	var size, other string
	root.Flags().StringVar(&other, "other", "5", "its own")
	below.Flags().StringVar(&size, "size", "1", "shared")
	if wrong := flagcheck.Wrong(root); len(wrong) != 0 {
		t.Errorf("found %q", wrong)
	}
	below.Flags().StringVar(&size, "length", "2", "shared")
	want := `root below --size: the help documents the default "1", and the program uses "2"`
	if wrong := flagcheck.Wrong(root); len(wrong) != 1 || wrong[0] != want {
		t.Errorf("found %q", wrong)
	}
}
