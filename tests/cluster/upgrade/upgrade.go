// Package upgrade has a cluster of an earlier release: its store, its gateways' state directories, its certificates and its pool.
// Tests start the present release on it. The program in upgrade/make makes the archive again.
package upgrade

import (
	"bytes"
	_ "embed" // the archive
	"fmt"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
)

// Release is the revision whose programs made Archive.
const Release = "880afa1"

// Archive is what that release left: a gzipped tar archive of Directory.
//
//go:embed testdata/880afa1.tar.gz
var Archive []byte

// Directory is where the cluster was made, and where its files must be again, because its objects contain absolute paths. /run is
// a file system of the test's own (package netns, Isolate).
const Directory = "/run/sluice-upgrade"

// Options of the cluster. Programs are the directory of the release's programs.
func Options(programs string) cluster.Options {
	return cluster.Options{Programs: programs, Directory: Directory, Pool: Directory + "/pool", Gateways: 2, Volumes: 3, Replicas: 1,
		VolumeMiB: 4}
}

// Names of the objects that were made in addition to those of package cluster.
const (
	// Snapshot of the first volume, taken when the volume held content 0. It holds content 1 now.
	Snapshot = "before"
	// Reserved is the volume with registrations and a reservation (write exclusive, registrants only).
	Reserved = 1
	// Holder and Registrant are hosts, by number, that registered their keys through each gateway. The holder reserved through the
	// first one. Other hosts may not write.
	Holder, HolderKey         = 1, 0xa
	Registrant, RegistrantKey = 2, 0xb
	Stranger                  = 3
)

// Host with CHAP.
type Host struct {
	Name       string
	Initiators []string
	// User and MutualUser are the CHAP names as they were stored; empty: none was given.
	User, Secret, MutualUser, MutualSecret string
}

const initiatorPrefix = "iqn.2026-11.dev.sluice:upgrade-"

// Hosts with CHAP. Hosts 1 to cluster.MaxHosts have none.
var Hosts = []Host{
	{Name: "named", Initiators: []string{initiatorPrefix + "named"}, User: "web", Secret: "a secret of 16 b"},
	{Name: "nameless", Initiators: []string{initiatorPrefix + "nameless", initiatorPrefix + "nameless-too"}, Secret: "another secret of"},
	{Name: "mutual", Initiators: []string{initiatorPrefix + "mutual"}, User: "db", Secret: "a third secret, 16", MutualSecret: "the target's own"},
}

// Spec of the host as YAML.
func (h Host) Spec() string {
	pair := func(user, secret string) string {
		if user == "" {
			return fmt.Sprintf("{password: %q}", secret)
		}
		return fmt.Sprintf("{username: %q, password: %q}", user, secret)
	}
	text := "initiators: ["
	for i, initiator := range h.Initiators {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q", initiator)
	}
	text += "], chap: " + pair(h.User, h.Secret)
	if h.MutualSecret != "" {
		text += ", mutualChap: " + pair(h.MutualUser, h.MutualSecret)
	}
	return text
}

const (
	blockSize = 512
	// patternBlocks are written at the beginning and at the end of each volume. The blocks in between were never written.
	patternBlocks = 64
)

// pattern returns a run of blocks, each of which contains its place.
func pattern(volume int, block uint64, content int) []byte {
	var all []byte
	for i := range uint64(patternBlocks) {
		text := fmt.Sprintf("volume %d block %d content %d. ", volume, block+i, content)
		all = append(all, bytes.Repeat([]byte(text), blockSize/len(text)+1)[:blockSize]...)
	}
	return all
}

func places() []uint64 {
	return []uint64{0, uint64(Options("").VolumeMiB)<<20/blockSize - patternBlocks}
}

// Writes returns the commands that fill a LUN with a content of a volume.
func Writes(lun uint16, volume, content int) []initiator.Command {
	var all []initiator.Command
	for _, block := range places() {
		all = append(all, initiator.Write(lun, block, pattern(volume, block, content), blockSize))
	}
	return all
}

// Content returns the final content of a volume.
func Content(volume int) int {
	if volume == 0 {
		return 1
	}
	return 0
}

// Read is a command and the data that it must return.
type Read struct {
	Command initiator.Command
	Data    []byte
}

// Reads returns the commands that check a content of a volume on a LUN.
func Reads(lun uint16, volume, content int) []Read {
	var all []Read
	for _, block := range places() {
		all = append(all, Read{initiator.Read(lun, block, patternBlocks, blockSize), pattern(volume, block, content)})
	}
	return append(all, Read{initiator.Read(lun, patternBlocks, patternBlocks, blockSize), make([]byte, patternBlocks*blockSize)})
}
