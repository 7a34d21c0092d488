package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/kubernetes"
	"sluice.dev/sluice/proto/client"
)

// globals are the flags that every command has. Each can be set by the environment.
type globals struct {
	server   string
	insecure bool
	tls      client.Files
	timeout  time.Duration
	output   string
	context  string
	// kubernetes is where the plugin of kubectl finds the control plane; nil: this is no plugin.
	kubernetes *kubernetes.Access
	// flags has these flags.
	flags *pflag.FlagSet
}

// newGlobals returns the flags of sluicectl, or those of its form as a plugin of kubectl.
func newGlobals(plugin bool) *globals {
	if plugin {
		return &globals{kubernetes: &kubernetes.Access{}}
	}
	return &globals{}
}

// lastShorthand is the short form of --last. In the plugin -n is the namespace.
func (g *globals) lastShorthand() string {
	if g.kubernetes != nil {
		return ""
	}
	return "n"
}

func (g *globals) add(root *cobra.Command) {
	flags := root.PersistentFlags()
	g.flags = flags
	flags.StringVarP(&g.server, "server", "s", environment("SLUICE_SERVER", "127.0.0.1:7460"),
		"host:port of the control plane; without a port: "+defaultPort+" ($SLUICE_SERVER)")
	flags.BoolVar(&g.insecure, "insecure", os.Getenv("SLUICE_INSECURE") == "1",
		"connect to a control plane without TLS ($SLUICE_INSECURE=1)")
	flags.StringVar(&g.tls.CA, "tls-ca", os.Getenv("SLUICE_TLS_CA"), "CA of the control plane, PEM ($SLUICE_TLS_CA)")
	flags.StringVar(&g.tls.Certificate, "tls-cert", os.Getenv("SLUICE_TLS_CERT"), "your certificate, PEM ($SLUICE_TLS_CERT)")
	flags.StringVar(&g.tls.Key, "tls-key", os.Getenv("SLUICE_TLS_KEY"), "its key, PEM ($SLUICE_TLS_KEY)")
	if g.kubernetes != nil {
		g.kubernetes.AddTo(flags)
	} else {
		flags.StringVar(&g.context, "context", os.Getenv("SLUICE_CONTEXT"),
			"context that has what the flags above and the environment leave out; empty: the current one ($SLUICE_CONTEXT)")
		_ = root.RegisterFlagCompletionFunc("context", completeContexts) // the flag exists
	}
	flags.DurationVar(&g.timeout, "timeout", 30*time.Second,
		"how long a call may take; with --wait or --prune: how long to wait, 10m where it is not given")
	flags.StringVarP(&g.output, "output", "o", "table", "table, wide, json, yaml, name, or jsonpath=TEMPLATE for fields of what json prints")
	_ = root.RegisterFlagCompletionFunc("output", // the flag exists
		cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// variables are the variables of the environment that set the flags of a connection.
var variables = map[string]string{
	"server": "SLUICE_SERVER", "insecure": "SLUICE_INSECURE", "tls-ca": "SLUICE_TLS_CA", "tls-cert": "SLUICE_TLS_CERT", "tls-key": "SLUICE_TLS_KEY",
}

// given reports whether the command line or the environment sets a flag.
func (g *globals) given(flag string) bool {
	return g.flags.Changed(flag) || os.Getenv(variables[flag]) != ""
}

// complete reports whether the command line and the environment say all about the connection.
func (g *globals) complete() bool {
	return g.given("server") && (g.given("insecure") || g.given("tls-ca") && g.given("tls-cert") && g.given("tls-key"))
}

// contextName returns the name of the context to use; empty: none.
func (g *globals) contextName(c *configuration) string { return cmp.Or(g.context, c.Current) }

// texts returns the fields of a context that are texts, by flag.
func (c *serverContext) texts() map[string]*string {
	return map[string]*string{"server": &c.Server, "tls-ca": &c.CA, "tls-cert": &c.Certificate, "tls-key": &c.Key}
}

// texts returns the values of the flags of a connection that are texts, by flag.
func (g *globals) texts() map[string]*string {
	return map[string]*string{"server": &g.server, "tls-ca": &g.tls.CA, "tls-cert": &g.tls.Certificate, "tls-key": &g.tls.Key}
}

// useContext sets the flags that neither the command line nor the environment gives from the context. Files that are given mean TLS, also
// if the context is of a control plane without.
func (g *globals) useContext() error {
	if g.flags == nil || g.kubernetes != nil || g.context == "" && g.complete() {
		return nil
	}
	read, err := readConfiguration()
	if err != nil {
		return err
	}
	name := g.contextName(read)
	if name == "" {
		return nil
	}
	chosen, err := read.named(name)
	if err != nil {
		return err
	}
	files := false
	for flag, value := range chosen.texts() {
		if !g.given(flag) {
			*g.texts()[flag] = cmp.Or(*value, *g.texts()[flag])
		} else if flag != "server" {
			files = true
		}
	}
	if !g.given("insecure") && !files {
		g.insecure = chosen.Insecure
	}
	return nil
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// defaultPort is the port of a control plane that --server does not name.
const defaultPort = "7460"

// withPort adds the default port to an address without one.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil || server == "" {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), defaultPort)
}

// waitTimeout is the default time limit of --wait and --prune.
const waitTimeout = 10 * time.Minute

// limit returns the time limit of a command; 0: none.
func (g *globals) limit(command *cobra.Command) time.Duration {
	set := func(name string) bool {
		flag := command.Flags().Lookup(name)
		return flag != nil && flag.Value.String() == "true"
	}
	switch {
	case command.Flags().Changed("timeout"):
		return g.timeout
	case set("follow"), set("watch"):
		return 0
	case set("wait"), set("prune"):
		return waitTimeout
	}
	return g.timeout
}

// connect returns a connection and a context that ends at the time limit.
func (g *globals) connect(ctx context.Context, limit time.Duration) (*grpc.ClientConn, context.Context, func(), error) {
	if g.kubernetes != nil && !g.given("server") {
		return g.connectRelease(ctx, limit)
	}
	if err := g.useContext(); err != nil {
		return nil, nil, nil, err
	}
	if !g.insecure && g.tls == (client.Files{}) {
		return nil, nil, nil, usagef("no certificate: give --tls-ca, --tls-cert and --tls-key (or SLUICE_TLS_CA, SLUICE_TLS_CERT, " +
			"SLUICE_TLS_KEY), or --insecure for a control plane without TLS, or store them by `sluicectl context set`")
	}
	connection, err := client.Connect(client.Options{Endpoints: []string{withPort(g.server)}, TLS: g.tls, Insecure: g.insecure})
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	ctx, cancel := limited(ctx, limit)
	return connection, ctx, func() { cancel(); _ = connection.Close() }, nil
}

// connectRelease is connect for the plugin: to the control plane of a release, with the certificate of its Secret.
func (g *globals) connectRelease(ctx context.Context, limit time.Duration) (*grpc.ClientConn, context.Context, func(), error) {
	for flag := range variables {
		if g.given(flag) {
			return nil, nil, nil, usagef("--%s (or %s) is for a control plane outside of Kubernetes: give --server, too", flag, variables[flag])
		}
	}
	ctx, cancel := limited(ctx, limit)
	release, err := g.kubernetes.Connect(ctx)
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	connection, err := client.Connect(client.Options{Endpoints: []string{release.Endpoint}, Credentials: release.Credentials})
	if err != nil {
		cancel()
		release.Close()
		return nil, nil, nil, err
	}
	return connection, ctx, func() { _ = connection.Close(); release.Close(); cancel() }, nil
}

// limited returns a context that ends after the limit; 0: never.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}
