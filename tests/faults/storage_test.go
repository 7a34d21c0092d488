package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// unmountBelow unmounts what is mounted below a directory, the last mount first: pools of their own, and mounts that repairs made.
func unmountBelow(directory string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var places []string
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); strings.HasPrefix(words[4], directory+"/") {
			places = append(places, words[4])
		}
	}
	for _, place := range slices.Backward(places) {
		err = errors.Join(err, command("umount "+place))
	}
	return err
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

// volumeIn makes a pool, a volume of 16 MiB and a target, all of the same name, and returns the path of the image.
func (s *system) volumeIn(name string, prepare ...string) (string, error) {
	directory, err := s.poolIn(name, prepare...)
	s.reading.Lock()
	s.later = append(s.later, func() error { return s.drops(name) })
	s.reading.Unlock()
	if err == nil {
		err = s.ctl("volume create " + name + " --pool " + name + " --size 16Mi --wait --timeout 20s")
	}
	if err == nil {
		err = s.ctl("target create " + name + " --lun 0=" + name + " --host host-1 --paths 3 --wait --timeout 20s") // volumes of targets have owners
	}
	if err == nil {
		err = s.ctl("volume move " + name + " --wait --timeout 20s") // from now on it is not moved without a request
	}
	if err != nil {
		return "", err
	}
	return onlyImage(directory)
}

// onlyImage returns the path of the only image in the directory of a pool.
func onlyImage(directory string) (string, error) {
	images, err := filepath.Glob(filepath.Join(directory, "volume-*"))
	if err == nil && len(images) != 1 {
		err = fmt.Errorf("images in %s: %v", directory, images)
	}
	if err != nil {
		return "", err
	}
	return images[0], nil
}

// drops deletes a volume and its pool, in addition to a repair.
func (s *system) drops(name string) error {
	return errors.Join(s.ctl("target delete "+name+" --yes --wait --timeout 20s"), s.ctl("volume delete "+name+" --wait --timeout 20s"), s.ctl("pool delete "+name+" --wait --timeout 20s"))
}

// reported is the interval at which gateways report pools, and the media of volumes.
const reported = "gateways report pools every 10 s"

const tmpfs = "mount -t tmpfs -o size=24M,mode=700 tmpfs"

// storageRows are faults of disks and images, each of a pool of its own.
var storageRows = []fault{
	{name: "the mount of a pool is missing", id: "PoolNotIdentified", object: "StoragePool/unmounted", cause: "/unmounted",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("unmounted", tmpfs)
			kept := directory + ".kept"
			if err == nil {
				err = errors.Join(os.Mkdir(kept, 0o700), command("mount --bind "+directory+" "+kept), command("umount -l "+directory))
			}
			return func() error { return command("mount --bind " + kept + " " + directory) }, err
		}},
	{name: "another file system is mounted at a pool's place", id: "PoolNotIdentified", object: "StoragePool/covered", cause: "/covered",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("covered")
			if err == nil {
				err = command(tmpfs + " " + directory)
			}
			return func() error { return command("umount -l " + directory) }, err
		}},
	{name: "a pool is nearly full", id: "PoolNearlyFull", object: "StoragePool/filling", cause: "is 9",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: fills("filling", "5600")},
	{name: "a pool is full", id: "PoolUnreachable", object: "StoragePool/full", cause: "no space left in",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported, induce: fills("full", "6144")},
	{name: "an image in use was renamed", id: "VolumeDataMisplaced", object: "Volume/renamed", cause: "its name no longer leads to the data",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: func(s *system) (func() error, error) {
			image, err := s.volumeIn("renamed")
			if err == nil {
				err = os.Rename(image, image+".kept")
			}
			return func() error { return os.Rename(image+".kept", image) }, err
		}},
	{name: "an image in use was truncated", id: "VolumeDataUnusable", object: "Volume/truncated", cause: "cut short",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: func(s *system) (func() error, error) {
			image, err := s.volumeIn("truncated")
			if err == nil {
				err = os.Truncate(image, 1<<20)
			}
			return func() error { return errors.Join(os.Truncate(image, 16<<20), s.ctl("volume move truncated")) }, err
		}},
	{name: "a snapshot in a pool without reflinks", id: "SnapshotFailed", object: "Snapshot/plain", cause: "Unsupported",
		induce: func(s *system) (func() error, error) {
			_, err := s.volumeIn("plain", tmpfs)
			if err == nil {
				err = s.ctl("snapshot create plain --volume plain")
			}
			return func() error {
				return s.ctl("snapshot delete plain --wait --timeout 20s")
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
	{name: "a volume is enlarged on a disk that is read-only", id: "VolumeDegraded", object: "Volume/unenlarged", cause: "Read-only file system",
		induce: func(s *system) (func() error, error) {
			directory, err := s.poolIn("unenlarged", tmpfs)
			if err == nil {
				err = errors.Join(s.ctl("volume create unenlarged --pool unenlarged --size 1Mi --wait --timeout 20s"), command("mount -o remount,ro "+directory),
					s.ctl("volume resize unenlarged --size 2Mi"))
			}
			return func() error { return command("mount -o remount,rw " + directory) }, err
		}, lasts: 10 * time.Second, known: "failed jobs are tried again after up to 8 s"},
	{name: "a device of a pool holds a file system", id: "DevicesUnusable", object: "StoragePool/formatted", cause: "/dev/loop",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported,
		induce: formatted("formatted", true)},
	{name: "the only device of a pool holds a file system", id: "PoolUnreachable", object: "StoragePool/useless", cause: "/dev/loop",
		grace: 10 * time.Second, lasts: 10 * time.Second, known: reported, induce: formatted("useless", false)},
	{name: "the disk of a volume hangs", id: "VolumeStuck", object: "Volume/stuck", cause: "completes none",
		induce: hangs},
	{name: "the disk of a volume returns errors", id: "VolumeMediumErrors", object: "Volume/failing", cause: "ended with errors of the medium",
		lasts: 30 * time.Second, known: "the finding ends 30 s after the last error", induce: fails},
}

// fills allocates blocks of 4 KiB in a pool of 24 MiB.
func fills(name, blocks string) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		directory, err := s.poolIn(name, tmpfs)
		file := filepath.Join(directory, "fill")
		if err == nil {
			_ = command("dd if=/dev/zero bs=4k count=" + blocks + " of=" + file) // it fails when the pool is full
		}
		return func() error { return errors.Join(os.Remove(file), s.ctl("pool delete "+name+" --wait")) }, err
	}
}

// formatted makes a pool of a device that holds a file system, and perhaps of an empty one.
func formatted(pool string, empty bool) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		device, err := loop(s, pool)
		devices := " --device " + device
		if err == nil {
			err = command("mkfs.ext4 -q " + device)
		}
		other := ""
		if empty && err == nil {
			other, err = loop(s, pool+"-empty")
			devices += " --device " + other
		}
		if err == nil {
			err = s.ctl("pool create " + pool + " --node node-1" + devices)
		}
		return func() error {
			failed := errors.Join(s.ctl("pool delete "+pool+" --wait"), command("losetup -d "+device))
			if other != "" {
				failed = errors.Join(failed, command("losetup -d "+other))
			}
			return failed
		}, err
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
	ctx, cancel := context.WithCancel(s.ctx)
	session, err := s.exports(ctx, "stuck")
	if err != nil {
		cancel()
		return nil, err
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
	}, nil
}

// fails lets the disk of pool `failing` refuse one write of a host.
func fails(s *system) (func() error, error) {
	session, err := s.exports(s.ctx, "failing")
	if err != nil {
		return nil, err
	}
	s.failing.Fail(syscall.EIO)
	response, err := session.Do(s.ctx, initiator.Write(0, 0, make([]byte, 512), 512))
	if err == nil && response.Sense.Key != initiator.SenseMediumError {
		err = fmt.Errorf("a disk with errors: %+v", response)
	}
	return func() error {
		defer session.Close()
		s.failing.Fail(0)
		_, err := session.Good(s.ctx, initiator.Write(0, 0, make([]byte, 512), 512))
		return err
	}, err
}

// exports makes a pool of the directory of this name, with a volume and a target, and logs a host in. The host has read the unit attention.
func (s *system) exports(ctx context.Context, name string) (*initiator.Session, error) {
	err := errors.Join(s.ctl("pool create "+name+" --node node-1 --directory "+filepath.Join(s.Directory, name)), s.reachable(name))
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
	session, err := initiator.Login(ctx, initiator.Options{Portal: s.Portals(owner)[0], Target: "iqn.2026-11.dev.sluice:" + name,
		Initiator: "iqn.2026-11.dev.sluice:cluster-host1", ISID: [6]byte{0x80, 0, 0, 0, 1, byte(owner)},
		CHAP: &initiator.CHAP{User: "web-" + strconv.Itoa(1), Secret: "correct-horse-1"}})
	if err != nil {
		return nil, err
	}
	if _, err = session.Good(ctx, initiator.TestUnitReady(0)); err != nil {
		_, err = session.Good(ctx, initiator.TestUnitReady(0)) // the first one may report a unit attention
	}
	return session, err
}
