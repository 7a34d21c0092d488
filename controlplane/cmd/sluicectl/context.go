package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func contextCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "context", Short: "Name control planes, and choose one", Args: cobra.NoArgs,
		Long: "Name control planes, and choose one. A context has the address of a control plane and the paths of CA, certificate and key, in " +
			"$XDG_CONFIG_HOME/sluice/config.yaml, or ~/.config/sluice/config.yaml without that variable. Flags have priority over " +
			"the environment, the environment over the context, and the context over the defaults.",
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(contextList(g), contextShow(g), contextUse(g), contextSet(g), contextDelete(g))
	return command
}

// completeContexts completes the name of a context, for an argument and for --context.
func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	read, err := readConfiguration()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(read.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

func contextList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the contexts; * marks the current one", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			read, err := readConfiguration()
			if err != nil {
				return err
			}
			if g.structured() {
				return encode(command.OutOrStdout(), read, g.output)
			}
			out := tabwriter.NewWriter(command.OutOrStdout(), 0, 8, 3, ' ', 0)
			_, _ = fmt.Fprintln(out, "CURRENT\tNAME\tSERVER\tCERTIFICATE")
			for _, name := range slices.Sorted(maps.Keys(read.Contexts)) {
				current, one := "", read.Contexts[name]
				if name == read.Current {
					current = "*"
				}
				certificate := orDash(one.Certificate)
				if one.Insecure {
					certificate = "insecure"
				}
				_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", current, name, orDash(one.Server), certificate)
			}
			return out.Flush()
		},
	}
}

func contextShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show a context, by default the current one", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: completeContexts,
		RunE: func(command *cobra.Command, names []string) error {
			read, err := readConfiguration()
			if err != nil {
				return err
			}
			name := strings.Join(names, "")
			if name == "" {
				name = g.contextName(read)
			}
			if name == "" {
				return usagef("there is no current context: `sluicectl context use` chooses one")
			}
			shown, err := read.named(name)
			if err != nil {
				return err
			}
			format := "yaml"
			if g.structured() {
				format = g.output
			}
			return encode(command.OutOrStdout(), map[string]any{"name": name, "context": shown}, format)
		},
	}
}

func contextUse(*globals) *cobra.Command {
	return contextChange("use", "Make a context the current one", func(c *configuration, name string) string {
		c.Current = name
		return "is the current one"
	})
}

// contextChange is a command that changes the file by the name of a context that exists. change returns what it has done.
func contextChange(verb, short string, change func(c *configuration, name string) string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts,
		RunE: func(command *cobra.Command, names []string) error {
			read, err := readConfiguration()
			if err != nil {
				return err
			}
			if _, err := read.named(names[0]); err != nil {
				return err
			}
			return stored(command, read, names[0], change(read, names[0]))
		},
	}
}

// stored writes the file, and prints what was done.
func stored(command *cobra.Command, c *configuration, name, what string) error {
	if err := c.write(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(command.OutOrStdout(), "context %s %s\n", name, what)
	return err
}

func contextSet(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Make a context of --server, --tls-ca, --tls-cert, --tls-key and --insecure, or change it", Args: cobra.ExactArgs(1),
		Long: "Make a context of --server, --tls-ca, --tls-cert, --tls-key and --insecure, or change what these flags give of a context. The " +
			"paths of files are stored as absolute paths. The first context becomes the current one.",
		ValidArgsFunction: completeContexts,
		RunE: func(command *cobra.Command, names []string) error {
			name := strings.TrimSpace(names[0])
			if name == "" {
				return usagef("a context needs a name")
			}
			read, err := readConfiguration()
			if err != nil {
				return err
			}
			changed, what := read.Contexts[name], "changed"
			if changed == nil {
				changed, what = &serverContext{}, "created"
			}
			given, err := g.giveTo(changed)
			if err != nil {
				return err
			}
			if !given {
				return usagef("nothing to store: give --server, --tls-ca, --tls-cert and --tls-key, or --insecure")
			}
			if changed.Server == "" {
				return usagef("context %q has no server: give --server", name)
			}
			read.Contexts[name] = changed
			if read.Current == "" {
				read.Current, what = name, what+", and is the current one"
			}
			return stored(command, read, name, what)
		},
	}
}

// giveTo stores the flags of the command line in a context. The environment is not stored. given: there is such a flag.
func (g *globals) giveTo(context *serverContext) (given bool, err error) {
	for flag, field := range context.texts() {
		if !g.flags.Changed(flag) {
			continue
		}
		given = true
		*field = g.flags.Lookup(flag).Value.String()
		if flag != "server" && *field != "" {
			if *field, err = filepath.Abs(*field); err != nil {
				return false, err
			}
			context.Insecure = false
		}
	}
	if g.flags.Changed("insecure") {
		given, context.Insecure = true, g.insecure
	}
	return given, nil
}

func contextDelete(*globals) *cobra.Command {
	return contextChange("delete", "Delete a context; the files that it names stay", func(c *configuration, name string) string {
		delete(c.Contexts, name)
		if c.Current != name {
			return "deleted"
		}
		c.Current = ""
		return "deleted; there is no current context now"
	})
}
