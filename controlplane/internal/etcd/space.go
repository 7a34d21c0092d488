package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Space is the use of etcd's space.
type Space struct {
	// Used is the size of the database of one member, Quota its limit, both in bytes. Quota is 0 if etcd does not report it.
	Used, Quota int64
	// Full: etcd refuses writes because a member has reached its limit.
	Full bool
}

// SpaceOf asks the first member that answers. Errors: that of the last member if none answers before the context ends.
func SpaceOf(ctx context.Context, client *clientv3.Client) (Space, error) {
	endpoints := client.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // an etcd in this process
	}
	failed := errors.New("etcd has no endpoint")
	for _, endpoint := range endpoints {
		status, err := client.Status(ctx, endpoint)
		if err != nil {
			failed = err
			continue
		}
		full := func(problem string) bool { return strings.Contains(problem, pb.AlarmType_NOSPACE.String()) }
		return Space{Used: status.DbSize, Quota: status.DbSizeQuota, Full: slices.ContainsFunc(status.Errors, full)}, nil
	}
	return Space{}, failed
}
