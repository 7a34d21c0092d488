package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// home holds all systems of an etcd.
	home = "/sluice/"
	// restoredAtATime bounds the volumes that are changed at a time, so that thousands do not wait for one sync each.
	restoredAtATime = 64
)

// Restored notes with each volume, in whatever system of an etcd, that the etcd was restored from a backup: what epochs and orders are
// given from now on lies above all that were given in what is lost: above the revision, for none was ever given without one, and above the
// milliseconds since 1970 for an etcd that begins again with lower ones. Called before any replica serves; twice is harmless. It returns
// how many volumes there are.
func Restored(ctx context.Context, client *clientv3.Client, now time.Time) (int, error) {
	clusters, err := clustersIn(ctx, client)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, cluster := range clusters {
		s, err := bind(ctx, client, Options{Cluster: cluster})
		if err != nil {
			return count, err
		}
		volumes, revision, err := s.Volumes.All(ctx)
		if err != nil {
			return count, err
		}
		floor := uint64(max(revision, now.UnixMilli()))
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(restoredAtATime)
		for _, volume := range volumes {
			all.Go(func() error {
				_, err := s.Volumes.Modify(ctx, volume.Meta.Name, func(v *model.Volume) (bool, error) {
					v.Status.Ownership = v.Status.Ownership.Restored(floor)
					return true, nil
				})
				return err
			})
		}
		if err := all.Wait(); err != nil {
			return count, err
		}
		count += len(volumes)
	}
	return count, nil
}

// clustersIn names the systems of an etcd.
func clustersIn(ctx context.Context, client *clientv3.Client) ([]string, error) {
	var all []string
	from, end := home, clientv3.GetPrefixRangeEnd(home)
	for {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) == 0 {
			return all, nil
		}
		name, _, below := strings.Cut(strings.TrimPrefix(string(got.Kvs[0].Key), home), "/")
		if !below {
			return nil, fmt.Errorf("store: %s is no system's", got.Kvs[0].Key)
		}
		all = append(all, name)
		from = clientv3.GetPrefixRangeEnd(home + name + "/")
	}
}
