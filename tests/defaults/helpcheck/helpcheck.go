// Package helpcheck checks the help of a program's commands: documented defaults against the values that the program uses, the names of
// flags' values, and examples.
package helpcheck

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WrongFlags lists the flags of a command, and of all commands below it, whose documented default differs from the value that the
// program uses without arguments. Causes are two flags with one variable, and a variable that is set after its flag was defined. It also
// lists flags whose help shows more than one word as the name of their value: pflag shows the first words in backquotes as that name.
func WrongFlags(command *cobra.Command) []string {
	var all []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.String() != flag.DefValue {
			all = append(all, fmt.Sprintf("%s --%s: the help documents the default %q, and the program uses %q",
				command.CommandPath(), flag.Name, flag.DefValue, flag.Value))
		}
		if name, _ := pflag.UnquoteUsage(flag); strings.ContainsAny(name, " /.") {
			all = append(all, fmt.Sprintf("%s --%s: the help shows %q as the name of its value: use no backquotes in it", command.CommandPath(), flag.Name, name))
		}
	})
	for _, below := range command.Commands() {
		all = append(all, WrongFlags(below)...)
	}
	return all
}

// WrongExamples lists commands without an example in their help, and examples that their command does not accept. Commands that only
// have subcommands need no example. newRoot makes the program's command tree; the second result is the number of commands.
func WrongExamples(newRoot func() *cobra.Command) ([]string, int) {
	var all []string
	commands := 0
	each(newRoot(), func(command *cobra.Command) {
		commands++
		if command.Example == "" {
			all = append(all, command.CommandPath()+" has no example")
		}
		for _, example := range strings.Split(strings.ReplaceAll(command.Example, "\\\n", " "), "\n") {
			if err := accepts(newRoot(), command.CommandPath(), example); err != nil {
				all = append(all, fmt.Sprintf("%s: the example %q: %v", command.CommandPath(), strings.TrimSpace(example), err))
			}
		}
	})
	return all, commands
}

// each calls f for every command that does something by itself.
func each(command *cobra.Command, f func(*cobra.Command)) {
	if command.Runnable() && !command.HasSubCommands() {
		f(command)
	}
	for _, below := range command.Commands() {
		each(below, f)
	}
}

// accepts returns why the command of this path does not accept an example; the redirection of its output does not count.
func accepts(root *cobra.Command, path, example string) error {
	example, _, _ = strings.Cut(example, " >")
	words := strings.Fields(example)
	if len(words) == 0 {
		return nil
	}
	found, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	if found.CommandPath() != path || words[0] != root.Name() {
		return fmt.Errorf("it calls %s of %s", found.CommandPath(), words[0])
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	if err := found.ValidateArgs(found.Flags().Args()); err != nil {
		return err
	}
	return found.ValidateRequiredFlags()
}
