package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// eachCommand calls f for a command and all commands below it that do something by themselves.
func eachCommand(command *cobra.Command, f func(*cobra.Command)) {
	if command.Runnable() && !command.HasSubCommands() {
		f(command)
	}
	for _, below := range command.Commands() {
		eachCommand(below, f)
	}
}

func TestEachCommandHasExamplesThatItAccepts(t *testing.T) {
	commands := 0
	eachCommand(newRoot("sluicectl"), func(command *cobra.Command) {
		commands++
		if command.Example == "" {
			t.Errorf("%s has no example", command.CommandPath())
		}
		for _, example := range strings.Split(command.Example, "\n") {
			words := strings.Fields(example)
			if len(words) == 0 {
				continue
			}
			fresh := newRoot(words[0])
			found, rest, err := fresh.Find(words[1:])
			if err != nil || found.CommandPath() != command.CommandPath() {
				t.Errorf("%s: the example %q calls %s: %v", command.CommandPath(), example, found.CommandPath(), err)
				continue
			}
			if err = found.ParseFlags(rest); err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err == nil {
				err = found.ValidateRequiredFlags()
			}
			if err != nil {
				t.Errorf("%s: the example %q: %v", command.CommandPath(), example, err)
			}
		}
	})
	if commands < 50 {
		t.Errorf("only %d commands were found", commands)
	}
}

func TestEachEntryOfTheExamplesBelongsToACommand(t *testing.T) {
	shown := map[string]bool{}
	eachCommand(newRoot("sluicectl"), func(command *cobra.Command) {
		path := strings.TrimPrefix(command.CommandPath(), "sluicectl ")
		shown[path] = true
		if _, verb, below := strings.Cut(path, " "); below {
			shown["KIND "+verb] = true
		}
	})
	for path := range examples {
		if !shown[path] {
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
