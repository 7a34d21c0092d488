package node

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// elsewhere puts kubelet's directory behind a symbolic link, as on a larger disk, and returns its real path.
func (m *machine) elsewhere() string {
	m.t.Helper()
	real := filepath.Join(m.root, "data", "kubelet")
	if err := os.MkdirAll(real, directoryMode); err != nil {
		m.t.Fatal(err)
	}
	m.link(real, filepath.Join(m.root, "kubelet"))
	return real
}

// at counts the mounts at a point, as the kernel shows them.
func (m *machine) at(point string) (count int) {
	for _, mounted := range m.mounted {
		if mounted.point == point {
			count++
		}
	}
	return count
}

func TestAVolumeComesAndGoesWhereKubeletsDirectoryIsBehindALink(t *testing.T) {
	single := fileSystem()
	single.AccessMode = &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER}
	for what, as := range map[string]*csi.VolumeCapability{"file system": fileSystem(), "for one pod": single, "raw block": rawBlock()} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				real := m.elsewhere()
				v := m.volume(m.start(), as)
				for range 2 { // kubelet repeats a call when it is not sure
					if err := v.stage(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := v.publish(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				staged := 1
				if as.GetBlock() != nil {
					staged = 0
				}
				point := filepath.Join(real, v.id, "target")
				if m.at(point) != 1 || m.at(filepath.Join(real, v.id, "staging")) != staged {
					t.Errorf("mounted: %v", m.mounted)
				}
				if _, err := v.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target()}); err != nil {
					t.Error(err)
				}
				if err := v.unpublish(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(point); m.at(point) > 0 || err == nil {
					t.Errorf("the pod would not end: mounted are %v, and the point is there: %v", m.mounted, err == nil)
				}
				if err := v.unstage(t.Context()); err != nil {
					t.Error(err)
				}
				m.nothingLeft()
			})
		})
	}
}

func TestAPointIsComparedAsTheKernelShowsIt(t *testing.T) {
	m := newMachine(t)
	real := m.elsewhere()
	m.put("", filepath.Join(real, "there"))
	m.link("/nowhere", filepath.Join(real, "link"))
	linked := filepath.Join(m.root, "kubelet")
	for given, want := range map[string]string{
		"/":                             "/",
		linked + "/there":               real + "/there",
		linked + "//not/../there/":      real + "/there",
		linked + "/not-there":           real + "/not-there",
		linked + "/link":                real + "/link", // a file system that is mounted there need not respond
		linked + "/no-parent/not-there": linked + "/no-parent/not-there",
		filepath.Join(real, "there"):    real + "/there",
	} {
		got, err := resolved(given)
		if got != want || err != nil {
			t.Errorf("%s is shown as %s, %v; right is %s", given, got, err, want)
		}
	}
	if same, err := m.start().mountedAt(linked + "/no-parent/not-there"); same != nil || err != nil {
		t.Errorf("mounted is %v, %v", same, err)
	}
}

func TestUnpublishingAnAbsentVolumeSucceeds(t *testing.T) {
	m := newMachine(t)
	m.elsewhere()
	v := m.volume(m.start(), fileSystem())
	if err := v.unpublish(t.Context()); err != nil || len(m.commands("umount")) > 0 {
		t.Errorf("%v; commands %v", err, m.ran)
	}
}
