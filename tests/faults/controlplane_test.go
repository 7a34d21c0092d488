package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

const (
	// The file of the database grows in steps of 16 MiB. etcdQuota is the space of each member's database in bytes, and etcdChunk that of one of the values that fill it.
	etcdQuota = 72 << 20
	etcdChunk = 1 << 20
	// etcdHelper is the argument with which this program changes etcd in the namespace of the control plane.
	etcdHelper = "change-etcd"
	junk       = "/junk/"
	etcdLimit  = 20 * time.Second
)

// controlPlaneRows are faults of replicas and of etcd. The API answers through the first replica.
var controlPlaneRows = []fault{
	{name: "a replica was killed", id: "OneReplica", object: "ControlPlane/", cause: "is one replica", grace: 10 * time.Second, doctor: true,
		known: "a replica that was killed counts until its lease ends", induce: func(s *system) (func() error, error) {
			return s.Replicas[1].Start, s.Replicas[1].Kill()
		}},
	{name: "a replica has another key file, and ends", id: "OneReplica", object: "ControlPlane/", cause: "is one replica", grace: 10 * time.Second,
		known: "a replica that has ended counts until its lease ends", induce: otherKey},
	{name: "a member of etcd was killed", id: "StoreMemberDown", object: "ControlPlane/", cause: "do not answer: http://127.0.0.1:2383",
		doctor: true, induce: func(s *system) (func() error, error) { return s.Members[2].Start, s.Members[2].Kill() }},
	{name: "etcd has lost its majority", id: "StoreUnreachable", object: "ControlPlane/", cause: "etcd, does not answer", doctor: true,
		lasts: 20 * time.Second, known: "after an election of etcd, gateways return to the leader", induce: func(s *system) (func() error, error) {
			members := s.Members[1:]
			return func() error { return signals(members, syscall.SIGCONT) }, signals(members, syscall.SIGSTOP)
		}},
	{name: "etcd has used most of its space", id: "StoreNearlyFull", object: "ControlPlane/", cause: "more than 80 %",
		lasts: 10 * time.Second, known: "members are defragmented one after the other", induce: func(s *system) (func() error, error) {
			return func() error { return s.etcd("clear") }, s.etcd("fill", "52")
		}},
	{name: "the replicas were suspended while etcd has no space left", id: "NoLeader", object: "ControlPlane/", cause: "has no leader",
		grace: 15 * time.Second, lasts: 20 * time.Second, known: "an election may take up to 10 s, and members are defragmented one after the other",
		induce: noLeader},
	{name: "etcd has no space left", id: "StoreFull", object: "ControlPlane/", cause: "no space left", doctor: true,
		lasts: 10 * time.Second, known: "members are defragmented one after the other", induce: func(s *system) (func() error, error) {
			return func() error { return s.etcd("clear") }, s.etcd("fill", "128")
		}},
}

func signals(processes []*netns.Process, signal syscall.Signal) error {
	var all []error
	for _, p := range processes {
		all = append(all, p.Signal(signal))
	}
	return errors.Join(all...)
}

// noLeader suspends the replicas until their leases have ended, when etcd stores nothing any more, so no new lease either.
func noLeader(s *system) (func() error, error) {
	err := s.etcd("fill", "128")
	if err == nil {
		err = errors.Join(signals(s.Replicas, syscall.SIGSTOP), s.etcd("await-no-candidate"), signals(s.Replicas, syscall.SIGCONT))
	}
	return func() error { return s.etcd("clear") }, err
}

// otherKey starts the second replica with another key file. It ends by itself.
func otherKey(s *system) (func() error, error) {
	replica := s.Replicas[1]
	before := replica.Arguments
	key, err := s.OtherKey(s.ctx)
	if err != nil {
		return nil, err
	}
	arguments := append([]string{}, before...)
	for i, word := range arguments[:len(arguments)-1] {
		if word == "--key-file" {
			arguments[i+1] = key
		}
	}
	if err := replica.Stop(20 * time.Second); err != nil {
		return nil, err
	}
	replica.Arguments = arguments
	err = replica.Start()
	<-replica.Done()
	if said := strings.Join(replica.Unexpected(), " "); !strings.Contains(said, "exit status 1") || !strings.Contains(said, "key file") {
		err = errors.Join(err, errors.New("the replica does not name its key file: "+said))
	}
	return func() error {
		replica.Arguments = before
		return replica.Start()
	}, err
}

// etcd changes etcd from the namespace of the control plane: `fill COUNT` or `clear`. `await-no-candidate` waits until no replica
// leads or wants to.
func (s *system) etcd(words ...string) error {
	arguments := append([]string{"netns", "exec", cluster.ControlNode, os.Args[0], etcdHelper, strings.Join(s.EtcdURLs(), ",")}, words...)
	if out, err := exec.CommandContext(s.ctx, "ip", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("etcd %v: %w: %s", words, err, out)
	}
	return nil
}

// changeEtcd is the program that etcd runs; it returns the exit code.
func changeEtcd(urls string, words []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), etcdLimit)
	defer cancel()
	endpoints := strings.Split(urls, ",")
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: etcdLimit})
	if err == nil {
		switch words[0] {
		case "fill":
			err = fillEtcd(ctx, client, words[1])
		case "clear":
			err = clearEtcd(ctx, client)
		case "await-no-candidate":
			err = netns.Until(ctx, func() error { return noCandidate(ctx, client) })
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func fillEtcd(ctx context.Context, client *clientv3.Client, count string) error {
	values := 0
	if _, err := fmt.Sscan(count, &values); err != nil {
		return err
	}
	for i := range values {
		_, err := client.Put(ctx, fmt.Sprint(junk, i), strings.Repeat("x", etcdChunk))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func noCandidate(ctx context.Context, client *clientv3.Client) error {
	all, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range all.Kvs {
		if strings.Contains(string(kv.Key), "/leader/") {
			return fmt.Errorf("there is a candidate: %s", kv.Key)
		}
	}
	return nil
}

// clearEtcd frees the space as docs/RUNBOOK.md says.
func clearEtcd(ctx context.Context, client *clientv3.Client) error {
	deleted, err := client.Delete(ctx, junk, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	if _, err := client.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	for _, endpoint := range client.Endpoints() {
		if _, err := client.Defragment(ctx, endpoint); err != nil {
			return err
		}
	}
	_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
