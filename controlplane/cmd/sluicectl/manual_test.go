package main

import (
	"testing"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/controlplane/packaging/manual"
)

func TestTheManualDescribesEachCommandWithItsFlags(t *testing.T) {
	manual.Test(t, func() *cobra.Command { return newRoot("sluicectl") }, "1")
}
