package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// referenceOf returns a page of Markdown with a section for each command of a program: what its help says. The flags of all commands are in
// the section of the program only.
func referenceOf(root *cobra.Command) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# %s\n\nGenerated from the program's help; `%[1]s COMMAND --help` prints the same.\n", root.Name())
	for _, command := range available(root) {
		command.InitDefaultHelpFlag()
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n", command.CommandPath(), strings.TrimSuffix(markdown(command.Short), "."))
		if more := strings.TrimSpace(strings.TrimPrefix(command.Long, strings.TrimSuffix(command.Short, ".")+".")); more != "" {
			fmt.Fprintf(&page, "\n%s\n", paragraphs(more))
		}
		if command.Runnable() {
			code(&page, "", command.UseLine())
		} else {
			page.WriteString("\n")
			for _, below := range command.Commands() {
				if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
					path := below.CommandPath()
					fmt.Fprintf(&page, "- [%s](#%s): %s\n", path, strings.ReplaceAll(path, " ", "-"), markdown(below.Short))
				}
			}
		}
		code(&page, "Examples:", command.Example)
		code(&page, "Flags:", command.LocalFlags().FlagUsages())
	}
	return page.String()
}

// paragraphs returns a text of the help as Markdown: its indented lines are blocks of code, which stand between empty lines.
func paragraphs(text string) string {
	lines := strings.Split(markdown(text), "\n")
	var result []string
	for i, line := range lines {
		line = strings.ReplaceAll(line, "\t", "    ")
		if i > 0 && lines[i-1] != "" && line != "" && strings.HasPrefix(line, "    ") != strings.HasPrefix(result[len(result)-1], "    ") {
			result = append(result, "")
		}
		result = append(result, line)
	}
	return strings.Join(result, "\n")
}

func code(page *strings.Builder, title, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if title != "" {
		fmt.Fprintf(page, "\n%s\n", title)
	}
	fmt.Fprintf(page, "\n```text\n%s\n```\n", strings.Trim(text, "\n"))
}
