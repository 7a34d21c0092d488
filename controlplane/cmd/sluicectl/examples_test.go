package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/tests/defaults/helpcheck"
)

func TestEachCommandHasExamplesThatItAccepts(t *testing.T) {
	wrong, commands := helpcheck.WrongExamples(func() *cobra.Command { return newRoot("sluicectl") })
	for _, problem := range wrong {
		t.Error(problem)
	}
	if commands < 50 {
		t.Errorf("only %d commands were found", commands)
	}
}

func TestEachEntryOfTheExamplesBelongsToACommand(t *testing.T) {
	root := newRoot("sluicectl")
	for path := range examples {
		words := strings.Fields(path)
		if words[0] == "KIND" {
			words[0] = kinds[0].name
		}
		if command, rest, err := root.Find(words); err != nil || len(rest) != 0 || command == root {
			t.Errorf("there is no command %s", path)
		}
	}
	for _, kind := range kinds {
		if exampleNames[kind.name] == "" {
			t.Errorf("examples have no name for a %s", kind.name)
		}
	}
}

func TestAsAPluginOfKubectlUsageAndExamplesHaveItsName(t *testing.T) {
	command, _, err := newRoot("kubectl-sluice").Find([]string{"volume", "list"})
	if err != nil || !strings.HasPrefix(command.Example, "  kubectl sluice volume list") || command.UseLine() != "kubectl sluice volume list [flags]" {
		t.Errorf("%v: %q, %q", err, command.UseLine(), command.Example)
	}
}
