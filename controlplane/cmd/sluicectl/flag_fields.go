package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/proto/client"
)

// flagFields has the fields that the flags of a kind's commands set, by the name of the kind. A refusal of the control plane names fields,
// and the user knows flags.
var flagFields = map[string]map[string]string{
	"volume": {
		"pool": "spec.pool", "size": "spec.sizeBytes", "block-size": "spec.blockSize", "write-cache": "spec.writeCache",
		"retain": "spec.reclaimPolicy", "trash": "spec.reclaimPolicy", "from-snapshot": "spec.source.snapshot",
		"from-volume": "spec.source.volume", "from-image": "spec.source.image", "iops": "spec.qos.iops", "iops-burst": "spec.qos.iopsBurst",
		"bytes-per-second": "spec.qos.bytesPerSecond", "bytes-burst": "spec.qos.bytesBurst",
	},
	"target": {"iqn": "spec.iqn", "gateway-pool": "spec.gatewayPool", "paths": "spec.paths", "lun": "spec.luns", "host": "spec.hosts"},
	"host": {
		"initiator": "spec.initiators", "chap-user": "spec.chap.username", "chap-secret-file": "spec.chap.password",
		"mutual-chap-user": "spec.mutualChap.username", "mutual-chap-secret-file": "spec.mutualChap.password",
		"allow-unauthenticated": "spec.allowUnauthenticated", "switch": "spec.switches", "max-sessions": "spec.maxSessions",
	},
	"snapshot": {"volume": "spec.volume", "retain": "spec.reclaimPolicy"},
	"pool": {
		"node": "spec.local.node", "directory": "spec.local.directory", "device": "spec.local.devices", "monitor": "spec.rbd.monitors",
		"user": "spec.rbd.user", "ceph-key-file": "spec.rbd.key", "ceph-pool": "spec.rbd.pool", "rados-namespace": "spec.rbd.radosNamespace",
		"data-pool": "spec.rbd.dataPool", "warn-percent": "spec.warnPercent", "gateway-pool": "spec.gatewayPools",
		"adoptable-image": "spec.adoptableImages",
	},
	"gateway": {
		"pool": "spec.gatewayPool", "node": "spec.node", "portal": "spec.portals", "forwarding-address": "spec.forwardingAddress",
		"weight": "spec.weight",
	},
	"gatewaypool": {"fabric": "spec.fabrics", "max-sessions": "spec.maxSessionsPerGateway"},
	"fabric":      {"subnet": "spec.subnets", "switch": "spec.switches", "link": "spec.links"},
}

// flagsError is an error of a command whose flags set the fields that the error names.
type flagsError struct {
	error
	command *cobra.Command
	fields  map[string]string
}

func (e *flagsError) Unwrap() error { return e.error }

// namingFlags adds the flags of a command to an error that names fields.
func namingFlags(err error, command *cobra.Command) error {
	if _, several := err.(interface{ Unwrap() []error }); several || len(client.Fields(err)) == 0 || command.Parent() == nil { //nolint:errorlint // report prints each one
		return err
	}
	fields := map[string]string{}
	for flag, field := range flagFields[command.Parent().Name()] {
		if command.LocalFlags().Lookup(flag) != nil {
			fields[flag] = field
		}
	}
	if len(fields) == 0 {
		return err
	}
	return &flagsError{err, command, fields}
}

// setting returns the flags whose field is one of these, in order.
func (e *flagsError) setting(is func(field string) bool) []string {
	var set []string
	for flag, field := range e.fields {
		if is(field) {
			set = append(set, flag)
		}
	}
	slices.Sort(set)
	return set
}

// within reports whether a path is that of a field or of a part of it.
func within(path, field string) bool {
	rest, below := strings.CutPrefix(path, field)
	return below && (rest == "" || strings.ContainsAny(rest[:1], ".["))
}

// flag returns the flag or argument that sets a field, as in `--size`, or an empty text. If several flags set it, a flag that the user gave
// has priority.
func (e *flagsError) flag(field string) string {
	switch {
	case field == "meta.name":
		return "NAME"
	case strings.HasPrefix(field, "meta.labels"):
		return "--label"
	}
	set := e.setting(func(of string) bool { return within(field, of) })
	if len(set) == 0 { // as spec.chap, which has several flags
		set = e.setting(func(of string) bool { return within(of, field) })
	}
	for _, flag := range set {
		if e.command.Flags().Changed(flag) {
			return "--" + flag
		}
	}
	if len(set) > 0 {
		return "--" + set[0]
	}
	return ""
}
