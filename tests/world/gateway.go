package world

import (
	"os"
	"path/filepath"
	"strings"
)

// Standalone is a gateway that is told everything by a file of its own, with no cluster around it.
type Standalone struct {
	Program string
	Name    string
	Node    string
	// Directory keeps what it writes; it exists.
	Directory string
	// Listen are its portals, each a portal group of its own.
	Listen []string
	Target string
	// LUNs are the inner lines of their YAML, by number.
	LUNs []string
	// Preload are libraries and settings put before it, as `LD_PRELOAD=...`.
	Environment []string
	// Targets is YAML below the target's `iqn`; empty: any host.
	Hosts string
}

// Process writes the configuration and gives the process, not started.
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
	return &Process{Name: s.Name, Node: s.Node, Log: filepath.Join(s.Directory, s.Name+".log"),
		Environment: s.Environment, Arguments: []string{s.Program, "--config", config,
			"--state-dir", filepath.Join(s.Directory, s.Name+".state"),
			"--admin-socket", filepath.Join(s.Directory, s.Name+".socket")}}, nil
}
