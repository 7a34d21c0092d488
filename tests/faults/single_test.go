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

// lastSeenAhead fails until the last contact of a gateway is in the future.
func (s *system) lastSeenAhead(gateway string) error {
	got, err := pb.NewGatewayServiceClient(s.Connection()).GetGateway(s.ctx, &pb.GetGatewayRequest{Name: gateway})
	if at := got.GetGateway().GetStatus().GetLastSeenTime().AsTime(); err == nil && time.Until(at) < 30*time.Minute {
		err = fmt.Errorf("%s was last seen at %v", gateway, at)
	}
	return err
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
