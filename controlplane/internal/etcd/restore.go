package etcd

import (
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Directory is where an embedded etcd keeps its data, below its own directory.
const Directory = "etcd"

// memberName of an embedded etcd.
const memberName = "sluice"

// revisionBump is more than the changes anyone can have seen since a backup: revisions go on above it, so
// that a watcher's old position is known to be gone instead of being taken for a later one.
const revisionBump = 1_000_000_000

// Restore makes the data of an embedded etcd from a backup. Errors: the backup is broken, or there is data already.
//
// The same backup may be restored twice, and an older one after a newer: so revisions go on above the milliseconds since 1970. An etcd
// makes less than a thousand changes a second in the long run, so those of a store that was restored earlier are all below.
func Restore(from, directory string, now time.Time) error {
	backup, err := snapshot.NewV3(zap.NewNop()).Status(from)
	if err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	peers := embed.NewConfig().AdvertisePeerUrls
	config := snapshot.RestoreConfig{
		SnapshotPath: from, Name: memberName, OutputDataDir: filepath.Join(directory, Directory),
		PeerURLs: []string{peers[0].String()}, InitialCluster: memberName + "=" + peers[0].String(),
		InitialClusterToken: "sluice", RevisionBump: uint64(max(revisionBump, now.UnixMilli()-backup.Revision)), MarkCompacted: true,
	}
	if err := snapshot.NewV3(zap.NewNop()).Restore(config); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	return nil
}
