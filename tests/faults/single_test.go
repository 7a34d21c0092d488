package faults_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// turned is the clock of a control plane that tests/cluster/wallclock has built.
type turned struct{ file string }

// set sets the clock this far ahead of the machine's.
func (c turned) set(ahead time.Duration) error {
	file, err := os.OpenFile(c.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), 0)
	return errors.Join(err, file.Close())
}

func (c turned) by(ahead time.Duration) func(*system) (func() error, error) {
	return func(*system) (func() error, error) { return func() error { return c.set(0) }, c.set(ahead) }
}

const day = 24 * time.Hour

// lifetime of the certificates of `sluice-controlplane certs`.
const lifetime = 365 * day

// A system of one replica, whose wall clock is turned.
func TestEveryFaultOfTheClockIsReportedUntilItIsRepaired(t *testing.T) {
	program, _ := filepath.Abs("../../build/tools/sluice-controlplane-of-any-time")
	if _, err := os.Stat(program); err != nil {
		t.Skip("not built: ", err)
	}
	directory := t.TempDir()
	t.Cleanup(func() { // after the processes have ended
		if err := unmountBelow(directory); err != nil {
			t.Error(err)
		}
	})
	clock := turned{filepath.Join(directory, "clock")}
	s := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Directory: directory, Replica: program,
		Node:               func(gateway int) string { return []string{"node-1", "node-2"}[gateway] },
		ReplicaEnvironment: func(int) ([]string, error) { return []string{"SLUICE_TEST_CLOCK=" + clock.file}, clock.set(0) }})
	if err := s.withPasswords(); err != nil {
		t.Fatal(err)
	}
	// It has one replica, with its store inside.
	s.healthy = []string{"OneReplica ControlPlane/: is one replica, with its store inside: while it is down nothing fails over"}
	if err := s.expectHealthy(disappears); err != nil {
		t.Fatal(err)
	}
	oneAfterTheOther(t, s, []fault{
		{name: "a certificate ends soon", id: "CertificateEndsSoon", object: "Certificate/server sluice-controlplane", cause: "expires in 9 days",
			doctor: true, induce: clock.by(lifetime - 10*day)},
		{name: "a certificate has expired", id: "CertificateExpired", object: "Certificate/server sluice-controlplane", cause: "has expired on",
			induce: clock.by(lifetime + day)},
		{name: "a gateway was last seen in the future", id: "ClockAhead", object: "Gateway/gw-2", cause: "in the future",
			grace: 5 * time.Second, lasts: 10 * time.Second, known: silence, induce: func(s *system) (func() error, error) {
				err := errors.Join(clock.set(time.Hour), s.Gateways[second].Kill())
				if err == nil {
					err = s.within(20*time.Second, func() error { return s.lastSeenAhead("gw-2") })
				}
				return s.Gateways[second].Start, errors.Join(err, clock.set(0))
			}},
		{name: "the image of a volume is missing", id: "ImageMissing", object: "StoragePool/losing", cause: "the images of 1 volumes are missing",
			grace: 20 * time.Second, lasts: 10 * time.Second, known: listed, induce: func(s *system) (func() error, error) {
				image, err := s.imageIn("losing")
				aside := filepath.Join(s.Directory, "aside")
				return func() error { return errors.Join(os.Rename(aside, image), clock.set(0)) },
					errors.Join(err, os.Rename(image, aside), clock.set(2*time.Hour))
			}},
		{name: "an image belongs to no volume", id: "OrphanedImages", object: "StoragePool/strange", cause: "has 1 images with names of volumes",
			grace: 20 * time.Second, lasts: 10 * time.Second, known: listed, induce: func(s *system) (func() error, error) {
				image, err := s.imageIn("strange")
				other := filepath.Join(filepath.Dir(image), "volume-00000000-0000-4000-8000-000000000000")
				return func() error { return errors.Join(os.Remove(other), clock.set(0)) },
					errors.Join(err, os.WriteFile(other, make([]byte, 1<<20), 0o600), clock.set(2*time.Hour))
			}},
		{name: "a deletion waits", id: "DeletionWaits", object: "Volume/staying", cause: "Read-only file system",
			lasts: 10 * time.Second, known: "failed jobs are tried again after up to 8 s", induce: func(s *system) (func() error, error) {
				image, err := s.imageIn("staying", tmpfs)
				directory := filepath.Dir(image)
				return func() error { return errors.Join(command("mount -o remount,rw "+directory), clock.set(0)) },
					errors.Join(err, command("mount -o remount,ro "+directory), s.ctl("volume delete staying"), clock.set(2*time.Minute))
			}},
		{name: "the last backup is old", id: "BackupOld", object: "ControlPlane/", cause: "has no backup of its store since", doctor: true,
			induce: func(s *system) (func() error, error) {
				backup := func() error { return s.ctl("backup " + filepath.Join(s.Directory, "store.backup")) }
				return func() error { return errors.Join(backup(), clock.set(0)) }, errors.Join(backup(), clock.set(9*day))
			}},
	})
	t.Run("the clock of the control plane differs from that of this machine", func(t *testing.T) {
		if err := clock.set(time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.within(appears, func() error { return s.doctorSays("ClockSkew", "its clock differs by 1m0s") }); err != nil {
			t.Error(err)
		}
		if err := clock.set(0); err != nil {
			t.Fatal(err)
		}
		if err := s.within(disappears, func() error {
			said, err := s.Doctor(s.ctx)
			if strings.Contains(said, "ClockSkew") {
				err = errors.Join(err, errors.New(said))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}

// listed is why a difference of images and volumes is known late.
const listed = "gateways report pools every 10 s, and two lists of images, 5 s apart, must agree"

// imageIn makes a pool with a volume that no target exports, both of that name, and returns the path of the image.
func (s *system) imageIn(name string, prepare ...string) (string, error) {
	directory, err := s.poolIn(name, prepare...)
	if err == nil {
		err = s.ctl("volume create " + name + " --pool " + name + " --size 1Mi --wait --timeout 20s")
	}
	if err != nil {
		return "", err
	}
	return onlyImage(directory)
}

// lastSeenAhead fails until the last contact of a gateway is in the future.
func (s *system) lastSeenAhead(gateway string) error {
	got, err := pb.NewGatewayServiceClient(s.Connection()).GetGateway(s.ctx, &pb.GetGatewayRequest{Name: gateway})
	if at := got.GetGateway().GetStatus().GetLastSeenTime().AsTime(); err == nil && time.Until(at) < 30*time.Minute {
		err = fmt.Errorf("%s was last seen at %v", gateway, at)
	}
	return err
}

// Two replicas share an etcd of one member, whose loss ends both.
func TestAStoreThatDoesNotSurviveTheLossOfAMemberIsReported(t *testing.T) {
	s := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 2, EtcdMembers: 1})
	f := fault{id: "StoreNotRedundant", object: "ControlPlane/", cause: "has 1 of the 3 members"}
	if err := s.within(appears, func() error { return s.shows(&f, true) }); err != nil {
		t.Error(err)
	}
}

// A control plane of another version than its gateways, of one replica. One gateway is one too few.
func TestAGatewayOfAnotherVersionIsReported(t *testing.T) {
	program, _ := filepath.Abs("../../build/tools/sluice-controlplane-99")
	if _, err := os.Stat(program); err != nil {
		t.Skip("not built: ", err)
	}
	s := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1, Replica: program})
	for _, f := range []fault{
		{id: "VersionSkew", object: "Gateway/gw-1", cause: "and the control plane 99.1.0"},
		{id: "GatewaysNotRedundant", object: "GatewayPool/default", cause: "has one gateway"},
		{id: "OneReplica", object: "ControlPlane/", cause: "with its store inside"},
		{id: "TargetHasOnePath", object: "Target/cluster", cause: "is to have one path"},
	} {
		t.Run(f.id, func(t *testing.T) {
			if err := s.within(appears, func() error { return s.shows(&f, true) }); err != nil {
				t.Error(err)
			}
		})
	}
}
