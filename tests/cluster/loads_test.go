package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// loadsAt lists the loads of a kind at one replica, by name.
func loadsAt(ctx context.Context, c *cluster.Cluster, replica int, kind string) (map[string]*pb.Load, error) {
	connection, err := client.Connect(client.Options{Endpoints: []string{c.Address(replica)}, TLS: c.Files("admin")})
	if err != nil {
		return nil, err
	}
	response, err := pb.NewLoadServiceClient(connection).ListLoads(ctx, &pb.ListLoadsRequest{Kind: kind})
	if err = errors.Join(err, connection.Close()); err != nil {
		return nil, err
	}
	loads := map[string]*pb.Load{}
	for _, load := range response.GetLoads() {
		loads[load.GetObject().GetName()] = load
	}
	return loads, nil
}

// A host reads 4 KiB blocks of one volume. Every replica shows that load, whichever replica has the stream of the owner, and shows that
// nothing else is used.
func TestEveryReplicaShowsTheLoadOfAVolumeItsHostAndItsOwner(t *testing.T) {
	const blocks, blockSize = 8, 512
	volume := cluster.VolumeName(1)
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 2, Replicas: 2, Paths: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.OwnerOf(ctx, volume)
	if err != nil {
		t.Fatal(err)
	}
	session := login(ctx, t, c, 1, owner)
	if _, err := session.Good(ctx, initiator.TestUnitReady(1)); err != nil {
		t.Fatal(err)
	}
	reading, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		for reading.Err() == nil {
			if _, err := session.Good(ctx, initiator.Read(1, 0, blocks, blockSize)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer working.Wait()
	defer stop()

	used := map[string]string{"Volume": volume, "Host": "host-1", "Gateway": cluster.GatewayName(owner)}
	for replica := range c.Replicas {
		for kind, name := range used {
			if err := netns.Until(ctx, func() error {
				loads, err := loadsAt(ctx, c, replica, kind)
				if err != nil {
					return err
				}
				for at, load := range loads {
					if busy := at == name; busy != (load.GetReadsPerSecond() > 0) {
						return fmt.Errorf("%s: %v", at, load)
					} else if !busy {
						continue
					}
					size := load.GetReadBytesPerSecond() / load.GetReadsPerSecond()
					// The counters of commands and of bytes are read one after the other.
					if math.Abs(size-blocks*blockSize) > blocks*blockSize/10 || load.GetWritesPerSecond() != 0 || load.GetLatency().AsDuration() <= 0 {
						return fmt.Errorf("%s: %v, %v bytes in a READ", at, load, size)
					}
					if kind == "Volume" && load.GetGateway() != cluster.GatewayName(owner) || kind != "Volume" && load.GetSessions() != 1 {
						return fmt.Errorf("%s: %v", at, load)
					}
				}
				if len(loads) == 0 {
					return fmt.Errorf("there is no load of a %s", kind)
				}
				return nil
			}); err != nil {
				t.Errorf("replica %d: %s", replica, err)
			}
		}
	}
	shown, err := c.Control(ctx, "top", "volumes", "--limit", "1")
	if lines := strings.Split(string(shown), "\n"); err != nil || !strings.HasPrefix(lines[0], "NAME") || !strings.HasPrefix(lines[1], volume) {
		t.Errorf("%v\n%s", err, shown)
	}
	stop()
	working.Wait()
	if err := netns.Until(ctx, func() error {
		loads, err := loadsAt(ctx, c, 0, "Volume")
		if err == nil && loads[volume].GetReadsPerSecond() != 0 {
			err = fmt.Errorf("after the last READ: %v", loads[volume])
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
