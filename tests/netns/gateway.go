package netns

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Standalone is a gateway that gets its whole configuration from a file, without a cluster.
type Standalone struct {
	Program string
	Name    string
	Node    string
	// Directory for its files; it exists.
	Directory string
	// Listen are its portals, each a separate portal group.
	Listen []string
	Target string
	// LUNs are the inner lines of their YAML, by number.
	LUNs []string
	// Environment variables of the process, such as `LD_PRELOAD=...`.
	Environment []string
	// Hosts is YAML below the target's `iqn`; empty: any host.
	Hosts string
	// Faults of its backends, "SUFFIX=FAULTS": of those whose path ends in SUFFIX, as gateway/src/faulty_open.cc says. Empty: none.
	// Otherwise faulty-gateway runs, which is in the directory of Program.
	Faults string
}

// FaultyGateway returns the program faulty-gateway in the directory of `gateway`. Error: it is not built.
func FaultyGateway(gateway string) (string, error) {
	program, err := filepath.EvalSymlinks(gateway)
	if err != nil {
		return "", err
	}
	program = filepath.Join(filepath.Dir(program), "faulty-gateway")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%w (.ci/compile release faulty-gateway)", err)
	}
	return program, nil
}

// program returns what to run, and its environment.
func (s Standalone) program() (string, []string, error) {
	if s.Faults == "" {
		return s.Program, s.Environment, nil
	}
	program, err := FaultyGateway(s.Program)
	return program, append(slices.Clone(s.Environment), "SLUICE_BACKEND_FAULTS="+s.Faults), err
}

// Process writes the configuration and returns the process, which is not started.
func (s Standalone) Process() (*Process, error) {
	var text strings.Builder
	text.WriteString("listen:\n")
	for i, address := range s.Listen {
		text.WriteString("- {address: \"" + address + "\", tpgt: " + string(rune('1'+i)) + "}\n")
	}
	hosts := s.Hosts
	if hosts == "" {
		hosts = `[{initiators: ["*"]}]`
	}
	text.WriteString("reactors: 2\ntargets:\n- iqn: " + s.Target + "\n  hosts: " + hosts + "\n  luns:\n")
	for i, lun := range s.LUNs {
		text.WriteString("  - {id: " + string(rune('0'+i)) + ", " + lun + "}\n")
	}
	config := filepath.Join(s.Directory, s.Name+".yaml")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	program, environment, err := s.program()
	if err != nil {
		return nil, err
	}
	return &Process{Name: s.Name, Node: s.Node, Log: filepath.Join(s.Directory, s.Name+".log"),
		Environment: environment, Arguments: []string{program, "--config", config,
			"--state-dir", filepath.Join(s.Directory, s.Name+".state"),
			"--admin-socket", filepath.Join(s.Directory, s.Name+".socket")}}, nil
}
