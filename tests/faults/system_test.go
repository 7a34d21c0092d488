package faults_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/netns"
)

// nodes has two gateways on the node of the pool, and one on another.
func nodes(gateway int) string {
	if gateway < 2 {
		return "node-1"
	}
	return "node-2"
}

// A system that is as it should be: three gateways on two nodes, two replicas, three members of etcd, and hosts with CHAP.
func TestEveryFaultIsReportedWithItsCauseUntilItIsRepaired(t *testing.T) {
	directory := t.TempDir()
	hanging, err := disk.Mount(filepath.Join(directory, "stuck.disk"), filepath.Join(directory, "stuck"))
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	failing, err := disk.Mount(filepath.Join(directory, "failing.disk"), filepath.Join(directory, "failing"))
	if err != nil {
		t.Fatal(errors.Join(err, hanging.Close()))
	}
	scratch := t.TempDir()
	pool, err := netns.XFS(scratch)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { // after the processes have ended
		if err := errors.Join(hanging.Close(), failing.Close(), pool.Unmount(), unmountBelow(directory)); err != nil {
			t.Error(err)
		}
	})
	s := start(t, cluster.Options{Gateways: 3, Volumes: 3, Paths: 2, Replicas: 2, EtcdQuota: etcdQuota, Node: nodes, Directory: directory, Pool: pool.Directory})
	s.hanging, s.failing = hanging, failing
	t.Cleanup(hanging.Resume) // a process cannot end before its calls do
	far := filepath.Join(directory, "far")
	if err := errors.Join(s.withPasswords(), os.Mkdir(far, 0o700), s.ctl("pool create far --node node-2 --directory "+far)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.ctl("volume create far --pool far --size 1Mi --wait --timeout 20s"),
		s.ctl("target create far --lun 0=far --host host-1 --wait --timeout 20s")); err != nil {
		t.Fatal(err)
	}
	if err := s.ctl("volume create spare --pool " + cluster.PoolName + " --size 1Mi --wait --timeout 20s"); err != nil {
		t.Fatal(err)
	}
	if err := s.expectHealthy(disappears); err != nil {
		t.Fatal("a healthy system has a finding: ", err)
	}
	together(t, s, "objects", objectRows)
	together(t, s, "storage", storageRows)
	t.Run("gateways", func(t *testing.T) { oneAfterTheOther(t, s, gatewayRows) })
	t.Run("control plane", func(t *testing.T) { oneAfterTheOther(t, s, controlPlaneRows) })
}
