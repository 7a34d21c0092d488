package node

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// hasCode checks the code of an error, and that its message contains the names.
func hasCode(t *testing.T, err error, want codes.Code, names ...string) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("it ended with %v, and %s is right", err, want)
	}
	for _, name := range names {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %q", err, name)
		}
	}
}

func TestAStageThatWasInterruptedIsUndoneByUnstageOfAPluginThatStartsAgain(t *testing.T) {
	for _, step := range []string{"--login", "multipathd add path", "mount -t ext4", "resize2fs"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				v := m.volume(m.start(), fileSystem())
				ctx, killed := context.WithCancel(t.Context())
				m.instead[step] = func(host.Command) (string, error) {
					killed()
					return "", context.Canceled
				}
				if err := v.stage(ctx); err == nil {
					t.Fatal("it was staged")
				}
				clear(m.instead)
				v.Service = m.start()
				if err := v.unstage(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.nothingLeft()
			})
		})
	}
}

func TestAStageThatFailedHasACodeThatKubeletUnstagesAfter(t *testing.T) {
	unstaged := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}
	for _, step := range []string{"--login", "multipathd add path", "blkid -p", "mount -t ext4", "resize2fs /dev"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				v := m.volume(m.start(), fileSystem())
				m.instead[step] = func(command host.Command) (string, error) { return "", failed(command, 1, "it is broken") }
				err := v.stage(t.Context())
				if !slices.Contains(unstaged, status.Code(err)) || !strings.Contains(err.Error(), "it is broken") {
					t.Errorf("it ended with %v", err)
				}
				if files, _ := filepath.Glob(filepath.Join(m.root, "state/*")); len(files) != 1 {
					t.Errorf("unstaging would not find what was begun: %v", files)
				}
				if err := v.unstage(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.nothingLeft()
			})
		})
	}
}

func TestAVolumeThatIsInUseStaysStagedWhereItIsStagedAgainInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.portals[one], m.portals[two] = false, false
		m.logout(iqn)
		hasCode(t, v.stage(t.Context()), codes.Unavailable, one)
		if maps := m.glob("block/dm-*"); len(maps) != 1 || len(m.mounted) != 1 {
			t.Errorf("maps %v, mounts %v", maps, m.mounted)
		}
	})
}

func TestAVolumeThatIsReachedByAnotherLUNThanItIsStagedByIsForKubeletToUnstage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		v.attachment.LUN = 6
		hasCode(t, v.stage(t.Context()), codes.Unavailable, "LUN 5", "LUN 6", "unstage")
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
	})
}

func TestAVolumeIsStagedByTheOtherPortalWhereOneRefusesTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.portals[two] = false
		v := m.volume(m.start(), rawBlock())
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tried := m.commands("-p " + two + " --login"); len(tried) != 1 {
			t.Errorf("logins at the portal that refuses: %v", tried)
		}
		if have := m.glob("block/dm-*/slaves/*"); len(have) != 1 {
			t.Errorf("paths of the map: %v", have)
		}
	})
}

func TestAVolumeThatNoPortalLetsInToIsNotStagedAndThePortalsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.instead["--login"] = func(command host.Command) (string, error) { return "", failed(command, 24, "login rejected") }
		v := m.volume(m.start(), rawBlock())
		hasCode(t, v.stage(t.Context()), codes.Unavailable, one, two, "login rejected")
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
	})
}

func TestADeviceOfAnotherVolumeIsRefusedAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.shows[5] = naaWrong
		v := m.volume(m.start(), rawBlock())
		hasCode(t, v.stage(t.Context()), codes.Unavailable, naaWrong, naaRight)
		if left := m.glob("block/*"); len(left) > 0 {
			t.Errorf("left of it: %v", left)
		}
		if commands := m.commands("multipath"); len(m.commands("add path")) > 0 {
			t.Errorf("multipathd got it: %v", commands)
		}
	})
}

// multipathd with `find_multipaths no`, which maps every disk, has a map before the plugin has checked the disk.
func TestAMapWithAnotherWWIDIsRefusedAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.instead["multipathd add path"] = func(command host.Command) (string, error) {
			m.join(command.Arguments[len(command.Arguments)-1], "3"+naaWrong)
			return "ok", nil
		}
		v := m.volume(m.start(), rawBlock())
		hasCode(t, v.stage(t.Context()), codes.Unavailable, naaRight)
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()
	})
}

func TestAMapOfAVolumeThatIsStagedIsNotTakenForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		s := m.start()
		v := m.volume(s, rawBlock())
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Another volume is reported under the same LUN number: its stage finds the disks of the staged one.
		other := m.volume(s, rawBlock())
		other.id, other.attachment.NAA = "volume-6", "3000000000000006"
		hasCode(t, other.stage(t.Context()), codes.Unavailable, naaRight, "held")
		if have := m.glob("block/dm-*/slaves/*"); len(have) != len(m.portals) {
			t.Errorf("paths of the staged volume: %v", have)
		}
	})
}

func TestASecondCallForAVolumeIsAbortedWhileAnotherVolumeIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		s := m.start()
		v := m.volume(s, rawBlock())
		goOn := make(chan struct{})
		m.instead["multipath -a"] = func(host.Command) (string, error) {
			<-goOn
			return "", nil
		}
		staged := make(chan error)
		go func() { staged <- v.stage(t.Context()) }()
		synctest.Wait() // it waits for multipath
		for name, call := range map[string]func(context.Context) error{"stage": v.stage, "publish": v.publish, "unpublish": v.unpublish,
			"unstage": v.unstage, "expand": func(ctx context.Context) error { return v.expand(ctx, 1) }} {
			if err := call(t.Context()); status.Code(err) != codes.Aborted {
				t.Errorf("%s: %v", name, err)
			}
		}
		other := m.volume(s, rawBlock())
		other.id = "volume-6"
		if err := other.unstage(t.Context()); err != nil {
			t.Errorf("another volume: %v", err)
		}
		close(goOn)
		if err := <-staged; err != nil {
			t.Error(err)
		}
		if err := v.unstage(t.Context()); err != nil {
			t.Errorf("after the first call: %v", err)
		}
	})
}
