package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/tests/initiator"
)

// poolIn makes a directory, prepares it, and creates a storage pool of that name in it.
func (s *system) poolIn(name string, prepare ...string) (directory string, err error) {
	directory = filepath.Join(s.Directory, name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	for _, line := range prepare {
		if err := command(line + " " + directory); err != nil {
			return "", err
		}
	}
	return directory, errors.Join(s.ctl("pool create "+name+" --node node-1 --directory "+directory), s.reachable(name))
}

// reachable waits until a gateway has identified a pool.
func (s *system) reachable(pool string) error {
	return s.within(20*time.Second, func() error {
		shown, err := s.Control(s.ctx, "pool", "get", pool, "-o", "json")
		if err == nil && !strings.Contains(string(shown), `"Reachable"`) {
			err = errors.New(string(shown))
		}
		return err
	})
}

// volumeIn makes a pool with a volume of 16 MiB, both of the same name, and returns the path of the image.
func (s *system) volumeIn(name string, prepare ...string) (string, error) {
	directory, err := s.poolIn(name, prepare...)
	if err == nil {
		err = s.ctl("volume create " + name + " --pool " + name + " --size 16Mi --wait --timeout 20s")
	}
	if err != nil {
		return "", err
	}
	images, err := filepath.Glob(filepath.Join(directory, "volume-*"))
	if err != nil || len(images) != 1 {
		return "", fmt.Errorf("images %v: %w", images, err)
	}
	return images[0], nil
}

// drops deletes a volume and its pool, in addition to a repair.
func (s *system) drops(name string) error {
	return errors.Join(s.ctl("volume delete "+name+" --wait --timeout 20s"), s.ctl("pool delete "+name+" --wait --timeout 20s"))
}

const tmpfs = "mount -t tmpfs -o size=24M,mode=700 tmpfs"

// storageRows are faults of disks and images, each of a pool of its own.
var storageRows = []fault{
	{name: "the mount of a pool is missing", id: "PoolNotIdentified", object: "StoragePool/unmounted", cause: "/unmounted",
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("unmounted", tmpfs)
			kept := directory + ".kept"
			if err == nil {
				err = errors.Join(os.Mkdir(kept, 0o700), command("mount --bind "+directory+" "+kept), command("umount -l "+directory))
			}
			return func() error { return command("mount --bind " + kept + " " + directory) }, err
		}},
	{name: "another file system is mounted at a pool's place", id: "PoolNotIdentified", object: "StoragePool/covered", cause: "/covered",
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("covered")
			if err == nil {
				err = command(tmpfs + " " + directory)
			}
			return func() error { return command("umount -l " + directory) }, err
		}},
	{name: "a pool is nearly full", id: "PoolNearlyFull", object: "StoragePool/filling", cause: "is 92 % full",
		induce: fills("filling", "22M")},
	{name: "a pool is full", id: "PoolNearlyFull", object: "StoragePool/full", cause: "is 100 % full", induce: fills("full", "24M")},
	{name: "an image in use was renamed", id: "VolumeDataMisplaced", object: "Volume/renamed", cause: "another file or image has the name",
		induce: func(s *system) (func() error, error) {
			image, err := s.volumeIn("renamed")
			if err == nil {
				err = os.Rename(image, image+".kept")
			}
			return func() error { return os.Rename(image+".kept", image) }, err
		}},
	{name: "an image in use was truncated", id: "VolumeDataUnusable", object: "Volume/truncated", cause: "cut short",
		induce: func(s *system) (func() error, error) {
			image, err := s.volumeIn("truncated")
			if err == nil {
				err = os.Truncate(image, 1<<20)
			}
			return func() error { return errors.Join(os.Truncate(image, 16<<20), s.ctl("volume move truncated")) }, err
		}},
	{name: "an image was removed, and the volume moves", id: "VolumeDataUnusable", object: "Volume/removed", cause: "No such file",
		grace: 5 * time.Second, known: "a move takes up to 5 s (R7)", lasts: 10 * time.Second,
		induce: func(s *system) (func() error, error) {
			image, err := s.volumeIn("removed")
			if err == nil {
				err = errors.Join(os.Rename(image, image+".kept"), s.ctl("volume move removed"))
			}
			return func() error { return os.Rename(image+".kept", image) }, err
		}},
	{name: "a snapshot in a pool without reflinks", id: "SnapshotFailed", object: "Snapshot/plain", cause: "Unsupported",
		induce: func(s *system) (func() error, error) {
			_, err := s.volumeIn("plain", tmpfs)
			if err == nil {
				err = s.ctl("snapshot create plain --volume plain")
			}
			return func() error {
				return errors.Join(s.ctl("snapshot delete plain --wait --timeout 20s"), s.drops("plain"))
			}, err
		}},
	{name: "a volume is created on a disk that is read-only", id: "VolumeNotMade", object: "Volume/unwritten", cause: "Read-only file system",
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("unwritten", tmpfs)
			if err == nil {
				err = errors.Join(command("mount -o remount,ro "+directory), s.ctl("volume create unwritten --pool unwritten --size 1Mi"))
			}
			return func() error { return command("mount -o remount,rw " + directory) }, err
		}, lasts: 10 * time.Second, known: "failed jobs are tried again after up to 8 s"},
	{name: "a device of a pool holds a file system", id: "DevicesUnusable", object: "StoragePool/formatted", cause: "/dev/loop",
		induce: func(s *system) (func() error, error) {
			device, err := loop(s, "formatted")
			if err == nil {
				err = errors.Join(command("mkfs.ext4 -q "+device), s.ctl("pool create formatted --node node-1 --device "+device))
			}
			return func() error { return errors.Join(s.ctl("pool delete formatted --wait"), command("losetup -d "+device)) }, err
		}},
	{name: "the disk of a volume hangs", id: "VolumeStuck", object: "Volume/stuck", cause: "completes none",
		induce: hangs},
	{name: "a snapshot with a clone is deleted", id: "DeletionWaits", object: "Snapshot/cloned", cause: "its deletion waits: ",
		grace: time.Minute, known: "a deletion is a finding after a minute",
		induce: func(s *system) (func() error, error) {
			err := errors.Join(s.ctl("snapshot create cloned --volume vol-2 --wait --timeout 20s"),
				s.ctl("volume create clone --pool pool --size 16Mi --from-snapshot cloned --wait --timeout 20s"), s.ctl("snapshot delete cloned"))
			return func() error { return s.ctl("volume delete clone --wait --timeout 20s") }, err
		}},
	{name: "a volume that a target maps is deleted", id: "DeletionWaits", object: "Volume/mapped", cause: "its deletion waits: ",
		grace: time.Minute, known: "a deletion is a finding after a minute",
		induce: func(s *system) (func() error, error) {
			err := errors.Join(s.ctl("volume create mapped --pool pool --size 1Mi --wait --timeout 20s"),
				s.ctl("target create mapped --lun 0=mapped --host host-1"), s.ctl("volume delete mapped"))
			return func() error { return s.ctl("target delete mapped --wait --timeout 20s") }, err
		}},
}

// fills allocates space in a pool of 24 MiB.
func fills(name, size string) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		directory, err := s.poolIn(name, tmpfs)
		file := filepath.Join(directory, "fill")
		if err == nil {
			_ = command("fallocate -l " + size + " " + file) // the pool's own files take some of it
		}
		return func() error { return errors.Join(os.Remove(file), s.ctl("pool delete "+name+" --wait")) }, err
	}
}

// loop attaches a loop device of 64 MiB.
func loop(s *system, name string) (string, error) {
	file := filepath.Join(s.Directory, name+".disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 64<<20)); err != nil {
		return "", err
	}
	out, err := output("losetup --find --show " + file)
	return strings.TrimSpace(out), err
}

// hangs lets the disk of pool `stuck` hang while a host reads its volume.
func hangs(s *system) (func() error, error) {
	const name = "stuck"
	err := errors.Join(s.ctl("pool create "+name+" --node node-1 --directory "+filepath.Join(s.Directory, "stuck")), s.reachable(name))
	if err == nil {
		err = errors.Join(s.ctl("volume create "+name+" --pool "+name+" --size 16Mi --wait --timeout 20s"),
			s.ctl("target create "+name+" --lun 0="+name+" --host host-1 --wait --timeout 20s"))
	}
	if err != nil {
		return nil, err
	}
	owner, err := s.OwnerOf(s.ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	session, err := initiator.Login(ctx, initiator.Options{Portal: s.Portals(owner)[0], Target: "iqn.2026-11.dev.sluice:" + name,
		Initiator: "iqn.2026-11.dev.sluice:cluster-host1", ISID: [6]byte{0x80, 0, 0, 0, 1, byte(owner)},
		CHAP: &initiator.CHAP{User: "web-" + strconv.Itoa(1), Secret: "correct-horse-1"}})
	if err != nil {
		cancel()
		return nil, err
	}
	if _, err = session.Good(ctx, initiator.TestUnitReady(0)); err != nil {
		_, err = session.Good(ctx, initiator.TestUnitReady(0)) // the first one may report a unit attention
	}
	s.hanging.Hang()
	answered := make(chan error, 1)
	go func() {
		_, err := session.Good(ctx, initiator.Read(0, 0, 1, 512))
		answered <- err
	}()
	return func() error {
		s.hanging.Resume()
		defer cancel()
		defer session.Close()
		return <-answered
	}, err
}
