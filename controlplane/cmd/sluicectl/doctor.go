package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
)

// finding is a problem with its remedy.
type finding struct {
	Object  string `json:"object"`
	Problem string `json:"problem"`
	Mend    string `json:"mend"`
}

// unhealthyError makes `doctor` exit with a code other than 0 if there are findings.
type unhealthyError struct{ count int }

func (e *unhealthyError) Error() string { return fmt.Sprintf("%d findings", e.count) }

func doctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		Short: "Look over the whole system and say what is not as it should be, with a mend for each finding",
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				seen, err := survey(ctx, connection)
				if err != nil {
					return err
				}
				findings := append(seen.findings(), g.certificateFindings(seen, time.Now())...)
				writeFindings(command.OutOrStdout(), "", findings)
				if len(findings) > 0 {
					return &unhealthyError{len(findings)}
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "%d gateways, %d targets, %d volumes, %d hosts: nothing to mend\n",
					len(seen.gateways), len(seen.targets), len(seen.volumes), len(seen.hosts))
				return err
			})
		},
	}
}

func writeFindings(to io.Writer, indent string, findings []finding) {
	for _, f := range findings {
		_, _ = fmt.Fprintf(to, "%s%s: %s\n%s    mend: %s\n", indent, f.Object, f.Problem, indent, f.Mend)
	}
}
