package etcd

import (
	"fmt"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Directory is where an embedded etcd keeps its data, below its own directory.
const Directory = "etcd"

// memberName of an embedded etcd.
const memberName = "sluice"

// revisionBump is more than the changes anyone can have seen since a backup: revisions go on from there, so
// that a watcher's old position is known to be gone instead of being taken for a later one.
const revisionBump = 1_000_000_000

// Restore makes the data of an embedded etcd from a backup. Errors: the backup is broken, or there is data already.
func Restore(from, directory string) error {
	peers := embed.NewConfig().AdvertisePeerUrls
	config := snapshot.RestoreConfig{
		SnapshotPath: from, Name: memberName, OutputDataDir: filepath.Join(directory, Directory),
		PeerURLs: []string{peers[0].String()}, InitialCluster: memberName + "=" + peers[0].String(),
		InitialClusterToken: "sluice", RevisionBump: revisionBump, MarkCompacted: true,
	}
	if err := snapshot.NewV3(zap.NewNop()).Restore(config); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	return nil
}
