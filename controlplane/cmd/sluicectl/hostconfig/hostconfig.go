package hostconfig

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var files embed.FS

// Setup is what the scripts need to know of a host.
type Setup struct {
	// Host is the name of the object.
	Host string
	// Initiators are the iSCSI names of the host.
	Initiators []string
	// Targets that permit the host, in the order of their names.
	Targets []Target
	// CHAP are the credentials of the host. A secret that is empty is asked for when the script runs. Nil: none are needed.
	CHAP *Credentials
	// Mutual are the credentials by which targets authenticate; nil: they need not.
	Mutual *Credentials
}

// Target is a target that the host may use.
type Target struct {
	IQN string
	// Portals that the host can reach, as host:port.
	Portals []string
	LUNs    []LUN
}

// LUN is a logical unit of a target.
type LUN struct {
	ID     int32
	Volume string
	// NAA is the designator of the volume (SPC-5 §7.7.6.6.5), in hexadecimal digits.
	NAA string
}

// Credentials are a CHAP name and a secret (RFC 7143 §12.1).
type Credentials struct {
	// User is the CHAP name; empty: the initiator's name or the target's IQN.
	User   string
	Secret string
}

// system is an operating system.
type system struct {
	// template is the name of its templates, with %s for the part.
	template string
	// quote returns a text as one word of its scripts.
	quote func(string) string
	// longest secret that its initiator supports, in bytes; 0: 255.
	longest int
}

var systems = map[string]system{
	"debian":  {template: "linux.%s.sh.tmpl", quote: quoteShell},
	"rhel":    {template: "linux.%s.sh.tmpl", quote: quoteShell},
	"proxmox": {template: "linux.%s.sh.tmpl", quote: quoteShell},
	"esxi":    {template: "esxi.%s.sh.tmpl", quote: quoteShell},
	"windows": {template: "windows.%s.ps1.tmpl", quote: quotePowerShell, longest: 16},
}

// Systems returns the names of the operating systems, in alphabetical order.
func Systems() []string { return slices.Sorted(maps.Keys(systems)) }

// Part is a part of what a host needs.
type Part string

// The parts.
const (
	// Script configures the host. It can run again at any time: what is there already stays.
	Script Part = "script"
	// Verify checks what Script has done, and changes nothing.
	Verify Part = "verify"
)

// Write writes a part for an operating system. Errors: an unknown system; a host that no target permits; a target without a portal; a
// secret that the system does not support.
func Write(w io.Writer, name string, part Part, s Setup) error {
	known, ok := systems[name]
	if !ok {
		return fmt.Errorf("%q is no operating system that is known here: use one of %s", name, strings.Join(Systems(), ", "))
	}
	if err := s.check(name, known); err != nil {
		return err
	}
	functions := template.FuncMap{
		"quote":    known.quote,
		"host":     func(portal string) string { host, _, _ := net.SplitHostPort(portal); return host },
		"port":     func(portal string) string { _, port, _ := net.SplitHostPort(portal); return port },
		"join":     strings.Join,
		"settings": initiatorSettings,
		"setting":  initiatorSettingNamed,
	}
	file := fmt.Sprintf(known.template, part)
	parsed, err := template.New(file).Funcs(functions).ParseFS(files, "templates/"+file, "templates/multipath.conf", "templates/multipath-defaults.conf")
	if err != nil {
		return err
	}
	return parsed.Execute(w, struct {
		Setup
		System string
	}{s, name})
}

// WriteLinux writes the settings that all Linux hosts need, for images of machines and for nodes of Kubernetes: the part of multipath.conf
// for Sluice's devices, and the lines of iscsid.conf.
func WriteLinux(w io.Writer) error {
	parsed, err := template.ParseFS(files, "templates/linux.txt", "templates/multipath.conf", "templates/iscsid.conf")
	if err != nil {
		return err
	}
	return parsed.Execute(w, nil)
}

// WriteExpected writes what a host has in the cluster, for `sluice-host check --expect`: lines `initiator NAME`, `portal IQN ADDRESS` and
// `lun IQN NUMBER NAA VOLUME`. Errors as those of Write, and a volume without an identity.
func WriteExpected(w io.Writer, s Setup) error {
	if err := s.check("linux", system{}); err != nil {
		return err
	}
	for _, target := range s.Targets {
		for _, lun := range target.LUNs {
			if lun.NAA == "" {
				return fmt.Errorf("volume %s of target %s has no identity yet: `sluicectl volume get %s` shows why", lun.Volume, target.IQN, lun.Volume)
			}
		}
	}
	parsed, err := template.ParseFS(files, "templates/expected.txt")
	if err != nil {
		return err
	}
	return parsed.Execute(w, s)
}

// Paths returns the count of paths that each logical unit has at the host.
func (t Target) Paths() int { return len(t.Portals) }

// Portals returns the portals of all targets, each once.
func (s Setup) Portals() []string {
	var all []string
	for _, target := range s.Targets {
		all = append(all, target.Portals...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s Setup) check(name string, system system) error {
	if len(s.Targets) == 0 {
		return fmt.Errorf("no target permits host %s: `sluicectl target create NAME --lun 0=VOLUME --host %s`", s.Host, s.Host)
	}
	for _, target := range s.Targets {
		if len(target.Portals) == 0 {
			return fmt.Errorf("target %s has no portal that host %s reaches: `sluicectl doctor` shows why", target.IQN, s.Host)
		}
	}
	for _, credentials := range []*Credentials{s.CHAP, s.Mutual} {
		if credentials != nil && system.longest != 0 && len(credentials.Secret) > system.longest {
			return fmt.Errorf("the CHAP secret has %d bytes, and %s supports at most %d: set a shorter one", len(credentials.Secret), name, system.longest)
		}
	}
	return nil
}

// quoteShell returns a text as one word of a POSIX shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// quotePowerShell returns a text as one string of PowerShell without expansion.
func quotePowerShell(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
