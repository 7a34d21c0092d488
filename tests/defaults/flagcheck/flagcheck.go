// Package flagcheck checks the help of a command's flags: the documented defaults against the values that its program uses, and the name
// of each flag's value.
package flagcheck

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Wrong lists the flags of a command, and of all commands below it, whose documented default differs from the value that the
// program uses without arguments. Causes are two flags with one variable, and a variable that is set after its flag was defined. It also
// lists flags whose help shows more than one word as the name of their value: pflag shows the first words in backquotes as that name.
func Wrong(command *cobra.Command) []string {
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
		all = append(all, Wrong(below)...)
	}
	return all
}
