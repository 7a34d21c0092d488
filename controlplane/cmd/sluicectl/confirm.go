package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirm shows what is about to happen, and asks the user for consent. Without a terminal it refuses.
func confirm(command *cobra.Command, what string) error {
	if !isTerminal(command.InOrStdin()) {
		return status.Error(codes.FailedPrecondition, what+"; nothing was done, because there is no terminal to ask on: --yes confirms it")
	}
	_, _ = fmt.Fprintf(command.ErrOrStderr(), "%s\nContinue? [y/N] ", what)
	answer, err := bufio.NewReader(command.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("not confirmed: nothing was done")
	}
	return nil
}
