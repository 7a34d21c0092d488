package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Flags of the plugin and of a command must not have the same shorthand, or Cobra panics.
func TestAsAPluginOfKubectlEachCommandHasTheFlagsOfKubectl(t *testing.T) {
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		for flag, shorthand := range map[string]string{"namespace": "n", "context": "", "kubeconfig": "", "release": ""} {
			if found := command.InheritedFlags().Lookup(flag); found == nil || found.Shorthand != shorthand {
				t.Errorf("%s --%s: %v", command.CommandPath(), flag, found)
			}
		}
		for _, below := range command.Commands() {
			check(below)
		}
	}
	for _, command := range newRoot("kubectl-sluice").Commands() {
		check(command)
	}
	if command, _, err := newRoot("kubectl-sluice").Find([]string{"context", "list"}); err == nil {
		t.Errorf("the plugin has %s: its contexts are those of the kubeconfig", command.CommandPath())
	}
}

func TestAsAPluginOfKubectlFlagsOfAConnectionNeedAServer(t *testing.T) {
	root := newRoot("kubectl-sluice")
	root.SetArgs([]string{"fabric", "list", "--tls-ca", "ca.crt"})
	err := execute(t.Context(), root)
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--tls-ca (or SLUICE_TLS_CA)") || !strings.Contains(err.Error(), "give --server") {
		t.Errorf("%v", err)
	}
}

func TestAsAPluginOfKubectlAServerIsReachedWithoutACluster(t *testing.T) {
	l := start(t)
	t.Setenv("KUBECONFIG", "/absent")
	l.must("fabric", "create", "red")
	var out strings.Builder
	root := newRoot("kubectl-sluice")
	root.SetOut(&out)
	root.SetArgs([]string{"fabric", "list", "--server", l.address, "--insecure"})
	if err := execute(t.Context(), root); err != nil || !strings.Contains(out.String(), "red") {
		t.Errorf("%v: %s", err, out.String())
	}
}
