package node

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// kernel is the initiator side of a machine as a folder: the files of sysfs about sessions, disks and maps, and the values that
// are written to them. Tests in a guest (tests/csi/node) check the behaviour of a real kernel; this one covers states that cannot
// be forced there.
type kernel struct {
	t    *testing.T
	root string
	// shows is the volume (NAA) that the target has under a LUN; sectors are its size.
	shows   map[int]string
	sectors map[int]int
	made    int // sessions, disks and maps: the source of their numbers
}

func (k *kernel) sys(path ...string) string {
	return filepath.Join(append([]string{k.root, "sys"}, path...)...)
}

func (k *kernel) glob(path ...string) []string {
	found, err := filepath.Glob(k.sys(path...))
	if err != nil {
		k.t.Error(err)
	}
	return found
}

func (k *kernel) put(content string, path string) {
	err := os.MkdirAll(filepath.Dir(path), directoryMode)
	if err == nil {
		err = os.WriteFile(path, []byte(content), fileMode)
	}
	if err != nil {
		k.t.Error(err)
	}
}

func (k *kernel) link(to, path string) {
	err := os.MkdirAll(filepath.Dir(path), directoryMode)
	if err == nil {
		err = os.Symlink(to, path)
	}
	if err != nil {
		k.t.Error(err)
	}
}

func (k *kernel) drop(path string) {
	if err := os.RemoveAll(path); err != nil {
		k.t.Error(err)
	}
}

// login creates a session.
func (k *kernel) login(iqn, portal string) {
	k.made++
	number := strconv.Itoa(k.made)
	address, port, _ := strings.Cut(portal, ":")
	device := k.sys("devices/platform/host"+number, "session"+number)
	k.put("", k.sys("class/scsi_host/host"+number, "scan"))
	k.link(device, k.sys("class/iscsi_session/session"+number, "device"))
	k.put("", filepath.Join(device, "uevent"))
	k.put(iqn+"\n", k.sys("class/iscsi_session/session"+number, "targetname"))
	k.put(stateLoggedIn+"\n", k.sys("class/iscsi_session/session"+number, "state"))
	k.put(address, k.sys("class/iscsi_connection/connection"+number+":0", "persistent_address"))
	k.put(port, k.sys("class/iscsi_connection/connection"+number+":0", "persistent_port"))
}

// logout ends all sessions with a target, and returns their number.
func (k *kernel) logout(iqn string) (ended int) {
	for _, session := range k.glob("class/iscsi_session/*") {
		if text(session, "targetname") == iqn {
			k.end(session)
			ended++
		}
	}
	return ended
}

func (k *kernel) end(session string) {
	number := strings.TrimPrefix(filepath.Base(session), "session")
	for _, disk := range k.glob("devices/platform/host"+number, "session*/target*/*") {
		k.deleteDisk(disk)
	}
	for _, path := range []string{session, k.sys("devices/platform/host" + number), k.sys("class/scsi_host/host" + number),
		k.sys("class/iscsi_connection/connection" + number + ":0")} {
		k.drop(path)
	}
}

// settle executes the requests that were written to files: scan, rescan, delete.
func (k *kernel) settle() {
	for _, file := range k.glob("class/scsi_host/*/scan") {
		if asked, ok := strings.CutPrefix(text(file), "- - "); ok {
			k.put("", file)
			lun, _ := strconv.Atoi(asked)
			k.scan(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "host"), lun&^flatSpace)
		}
	}
	for _, disk := range k.glob("devices/platform/host*/session*/target*/*") {
		if text(disk, "delete") == "1" {
			k.deleteDisk(disk)
		} else if text(disk, "rescan") == "1" {
			k.resize(disk)
		}
	}
}

func (k *kernel) scan(number string, lun int) {
	naa, ok := k.shows[lun]
	disk := k.sys("devices/platform/host"+number, "session"+number, "target"+number+":0:0", number+":0:0:"+kernelLUN(int32(lun)))
	if _, err := os.Stat(disk); !ok || err == nil {
		return
	}
	k.made++
	name := "sd" + string(rune('a'+k.made))
	identity, err := hex.DecodeString(naa)
	if err != nil {
		k.t.Error(err)
	}
	page := append([]byte{0, 0x83, 0, byte(descriptorHeader + len(identity)), 1, typeNAA, 0, byte(len(identity))}, identity...)
	k.put(string(page), filepath.Join(disk, "vpd_pg83"))
	k.put("running", filepath.Join(disk, "state"))
	k.put("", filepath.Join(disk, "rescan"))
	k.put("", filepath.Join(disk, "delete"))
	k.put("", filepath.Join(disk, "block", name, "uevent"))
	k.link(disk, k.sys("block", name, "device"))
	k.put(fmt.Sprintf("8:%d", k.made), k.sys("block", name, "dev"))
	k.put("", filepath.Join(k.root, "udev", fmt.Sprintf("b8:%d", k.made)))
	k.resize(disk)
}

func (k *kernel) resize(disk string) {
	lun, _ := strconv.Atoi(disk[strings.LastIndexByte(disk, ':')+1:])
	k.put("", filepath.Join(disk, "rescan"))
	for _, block := range k.glob("block/sd*") {
		if at, _ := os.Readlink(filepath.Join(block, "device")); at == disk {
			k.put(strconv.Itoa(k.sectors[lun&^flatSpace]), filepath.Join(block, "size"))
		}
	}
}

func (k *kernel) deleteDisk(disk string) {
	for _, block := range k.glob("block/sd*") {
		if at, _ := os.Readlink(filepath.Join(block, "device")); at == disk {
			k.drop(block)
		}
	}
	k.drop(disk)
}

// join adds a disk to the map of a WWID, and creates that map if needed.
func (k *kernel) join(name, wwid string) {
	var dm string
	for _, file := range k.glob("block/dm-*") {
		if text(file, "dm/uuid") == "mpath-"+wwid {
			dm = file
		}
	}
	if dm == "" {
		k.made++
		dm = k.sys("block", fmt.Sprintf("dm-%d", k.made))
		k.put("mpath-"+wwid, filepath.Join(dm, "dm/uuid"))
		k.put(fmt.Sprintf("mpath%d", k.made), filepath.Join(dm, "dm/name"))
		k.put(fmt.Sprintf("254:%d", k.made), filepath.Join(dm, "dev"))
		k.put(text(k.sys("block", name, "size")), filepath.Join(dm, "size"))
	}
	k.put("", filepath.Join(dm, "slaves", name))
	k.put("", k.sys("block", name, "holders", filepath.Base(dm)))
}

// unmap removes the map of a name.
func (k *kernel) unmap(name string) bool {
	for _, dm := range k.glob("block/dm-*") {
		if text(dm, "dm/name") == name {
			for _, held := range k.glob("block/sd*/holders", filepath.Base(dm)) {
				k.drop(held)
			}
			k.drop(dm)
			return true
		}
	}
	return false
}
