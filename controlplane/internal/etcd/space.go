package etcd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Space is the use of etcd's space, and the state of its members.
type Space struct {
	// Used is the size of the database of one member, Quota its limit, both in bytes. Quota is 0 if etcd does not report it.
	Used, Quota int64
	// Full: etcd refuses writes because a member has reached its limit.
	Full bool
	// Silent has the endpoints of members that do not answer, while others do.
	Silent []string
	// Members is the number of members that vote; 0: not known.
	Members int
}

// memberLimit bounds the time in which a member answers.
const memberLimit = time.Second

// SpaceOf asks all members. The answer is that of the first endpoint that answers. Errors: that of the last endpoint if none answers
// within memberLimit, or before the context ends.
func SpaceOf(ctx context.Context, client *clientv3.Client) (Space, error) {
	ctx, cancel := context.WithTimeout(ctx, memberLimit)
	defer cancel()
	endpoints := client.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // an etcd in this process
	}
	answers, failures := make([]*clientv3.StatusResponse, len(endpoints)), make([]error, len(endpoints))
	var all sync.WaitGroup
	for i, endpoint := range endpoints {
		all.Go(func() { answers[i], failures[i] = client.Status(ctx, endpoint) })
	}
	all.Wait()
	var space *Space
	var silent []string
	for i, status := range answers {
		if failures[i] != nil {
			silent = append(silent, endpoints[i])
		} else if space == nil {
			full := func(problem string) bool { return strings.Contains(problem, pb.AlarmType_NOSPACE.String()) }
			space = &Space{Used: status.DbSize, Quota: status.DbSizeQuota, Full: slices.ContainsFunc(status.Errors, full)}
		}
	}
	if space == nil {
		return Space{}, failures[len(failures)-1]
	}
	space.Silent = silent
	if members, err := client.MemberList(ctx, clientv3.WithSerializable()); err == nil {
		for _, member := range members.Members {
			if !member.IsLearner {
				space.Members++
			}
		}
	}
	return *space, nil
}
