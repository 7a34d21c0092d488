package etcd

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Directory is the subdirectory of the data directory in which an embedded etcd stores its data.
const Directory = "etcd"

// memberName of an embedded etcd.
const memberName = "sluice"

// revisionBump exceeds the changes that any client can have seen since a backup. Revisions continue above it, so that the old
// revision of a watch is reported as compacted, and not mistaken for a later one.
const revisionBump = 1_000_000_000

// clusterToken returns a random token for a cluster that is founded now. Ids of cluster and member are derived from token and address.
// With a fixed token, a member that lost its data and founds a cluster again would have its former ids. The former members would take it
// for the same member, although it knows nothing of what it had confirmed.
func clusterToken() string { return rand.Text() }

// Restore creates the data of an embedded etcd from a backup. Errors: the backup is damaged, or there is data already.
//
// The same backup may be restored twice, and an older one after a newer one. Therefore revisions continue above the milliseconds
// since 1970. Over a long time an etcd makes less than a thousand changes per second, so the revisions of a store that was
// restored earlier are all below.
func Restore(from, directory string, now time.Time) error {
	backup, err := snapshot.NewV3(zap.NewNop()).Status(from)
	if err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	peers := embed.NewConfig().AdvertisePeerUrls
	config := snapshot.RestoreConfig{
		SnapshotPath: from, Name: memberName, OutputDataDir: filepath.Join(directory, Directory),
		PeerURLs: []string{peers[0].String()}, InitialCluster: memberName + "=" + peers[0].String(),
		InitialClusterToken: clusterToken(), RevisionBump: uint64(max(revisionBump, now.UnixMilli()-backup.Revision)), MarkCompacted: true,
	}
	if err := snapshot.NewV3(zap.NewNop()).Restore(config); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	return nil
}
