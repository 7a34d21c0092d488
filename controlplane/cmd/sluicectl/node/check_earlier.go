package node

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	tlsDirectory    = "/etc/sluice/tls"
	controlPlaneEnv = "/etc/sluice/controlplane.env"
	controlPlaneDir = "/var/lib/sluice-controlplane"
)

// checkEarlier refuses a server that is part of a cluster, unless this command has begun that set-up. Then its plan is used.
func (p *Preflight) checkEarlier(context.Context) (string, []Problem) {
	record, err := p.System.readRecord()
	if err != nil {
		return "", one("correct or remove "+RecordFile, "the record of an earlier run cannot be read: %v", err)
	}
	if record != nil {
		p.Earlier = true
		*p.Plan = *record
		if joins := record.Joined != ""; joins != p.Joining && !p.CheckOnly {
			return "", one("run that command again, or remove "+RecordFile+" and what that command has made", "this server was set up by `sluicectl node %s`",
				map[bool]string{true: "join", false: "init"}[joins])
		}
		return "node " + record.Name + " by this command (" + RecordFile + ")", p.differences(record)
	}
	var found []string
	for _, pattern := range []string{controlPlaneDir + "/*", "/var/lib/sluice/gateway-*", tlsDirectory + "/*", "/etc/sluice/gateway-*.env"} {
		matches, _ := filepath.Glob(p.System.path(pattern)) // the patterns are valid
		for _, match := range matches {
			found = append(found, strings.TrimPrefix(match, strings.TrimSuffix(p.System.path("/"), "/")))
		}
	}
	text, err := p.System.read(controlPlaneEnv)
	if err != nil && !os.IsPermission(err) {
		return "", one("correct the file", "%s cannot be read: %v", controlPlaneEnv, err)
	}
	if flags := flagsIn(text); flags != "" {
		found = append(found, controlPlaneEnv+" with the flags "+flags)
	}
	if len(found) > 0 {
		return "", one("if the earlier cluster is not needed any more, stop its services and remove these files; "+
			"docs/INSTALL.md shows how to extend a cluster that was set up by its single commands",
			"this server has files of a cluster: %s", strings.Join(found, ", "))
	}
	return "none", nil
}

// differences are the options that are not those of the earlier run.
func (p *Preflight) differences(record *Plan) []Problem {
	var problems []Problem
	differs := func(flag, given, was string) {
		if given != "" && given != was {
			problems = append(problems, one("leave the flag out, and the earlier value is used; --"+flag+" cannot change afterwards",
				"this server was set up with --%s %s, not %s", flag, cmp.Or(was, "(none)"), given)...)
		}
	}
	differs("name", p.Options.Name, record.Name)
	differs("address", p.Options.Address, record.Address)
	differs("pool", strings.Join(p.Options.Pools, ","), strings.Join(record.Pools, ","))
	for _, text := range p.Options.Fabrics {
		if len(record.Fabrics) == 0 {
			break // a join that was interrupted before it knew them
		}
		name, cidr, _ := strings.Cut(text, "=")
		known := record.Fabrics[name]
		if cidr != known && cidr != subnetOf(known) {
			differs("fabric", text, strings.Trim(name+"="+known, "="))
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.What, b.What) })
	return problems
}
