package main

import (
	"testing"

	"sluice.dev/sluice/controlplane/packaging/manual"
)

func TestTheManualDescribesEachCommandWithItsFlags(t *testing.T) {
	manual.Test(t, newRoot, "8")
}
