package main

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
)

// globals are the flags that every command has. Each can be set by the environment.
type globals struct {
	server   string
	insecure bool
	tls      client.Files
	timeout  time.Duration
	output   string
}

func (g *globals) add(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&g.server, "server", "s", environment("SLUICE_SERVER", "127.0.0.1:7460"),
		"host:port of the control plane; without a port: "+defaultPort+" ($SLUICE_SERVER)")
	flags.BoolVar(&g.insecure, "insecure", os.Getenv("SLUICE_INSECURE") == "1",
		"connect to a control plane without TLS ($SLUICE_INSECURE=1)")
	flags.StringVar(&g.tls.CA, "tls-ca", os.Getenv("SLUICE_TLS_CA"), "CA of the control plane, PEM ($SLUICE_TLS_CA)")
	flags.StringVar(&g.tls.Certificate, "tls-cert", os.Getenv("SLUICE_TLS_CERT"), "your certificate, PEM ($SLUICE_TLS_CERT)")
	flags.StringVar(&g.tls.Key, "tls-key", os.Getenv("SLUICE_TLS_KEY"), "its key, PEM ($SLUICE_TLS_KEY)")
	flags.DurationVar(&g.timeout, "timeout", 30*time.Second,
		"how long a call may take; with --wait or --prune: how long to wait, 10m where it is not given")
	flags.StringVarP(&g.output, "output", "o", "table", "table, wide, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions( // the flag exists
		[]string{"table", "wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
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
	if !g.insecure && g.tls == (client.Files{}) {
		return nil, nil, nil, usagef("no certificate: give --tls-ca, --tls-cert and --tls-key " +
			"(or SLUICE_TLS_CA, SLUICE_TLS_CERT, SLUICE_TLS_KEY), or --insecure for a control plane without TLS")
	}
	connection, err := client.Connect(client.Options{Endpoints: []string{withPort(g.server)}, TLS: g.tls, Insecure: g.insecure})
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	if limit == 0 {
		return connection, ctx, func() { _ = connection.Close() }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return connection, ctx, func() { cancel(); _ = connection.Close() }, nil
}
