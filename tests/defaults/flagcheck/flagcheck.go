// Package flagcheck compares the documented defaults of a command's flags with the values that its program uses.
package flagcheck

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Wrong lists the flags of a command, and of all commands below it, whose documented default differs from the value that the
// program uses without arguments. Causes are two flags with one variable, and a variable that is set after its flag was defined.
func Wrong(command *cobra.Command) []string {
	var all []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.String() != flag.DefValue {
			all = append(all, fmt.Sprintf("%s --%s: the help documents the default %q, and the program uses %q",
				command.CommandPath(), flag.Name, flag.DefValue, flag.Value))
		}
	})
	for _, below := range command.Commands() {
		all = append(all, Wrong(below)...)
	}
	return all
}
