package node

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/operator/internal/csi/host"
)

func TestAVolumeThatIsNotStagedIsNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := m.volume(m.start(), rawBlock())
		hasCode(t, v.publish(t.Context()), codes.FailedPrecondition, v.id, "not staged")
		if len(m.ran) > 0 {
			t.Errorf("commands: %v", m.ran)
		}
	})
}

func TestAVolumeWhoseMapIsGoneIsNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		for _, file := range m.glob("block/dm-*") {
			m.unmap(text(file, "dm/name"))
		}
		hasCode(t, v.publish(t.Context()), codes.FailedPrecondition, naaRight)
		if bound := m.commands("--bind"); len(bound) > 0 {
			t.Errorf("the bare directory was given to the pod: %v", bound)
		}
	})
}

func TestAnExpansionWhoseMapDoesNotGrowFailsAndTheFileSystemIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		m.sectors[5] *= 2
		m.instead["multipathd resize map"] = func(host.Command) (string, error) { return "ok", nil }
		before := len(m.commands("resize2fs"))
		hasCode(t, v.expand(t.Context(), 2*sectors*sectorSize), codes.Internal, "the map has not grown")
		if after := len(m.commands("resize2fs")); after != before {
			t.Error("the file system was grown")
		}
		clear(m.instead)
		if err := v.expand(t.Context(), 2*sectors*sectorSize); err != nil {
			t.Fatal(err)
		}
		if after := len(m.commands("resize2fs")); after != before+1 {
			t.Error("the file system was not grown")
		}
	})
}

func TestAnExpansionWhosePathsDoNotGrowFailsAndTheMapIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		v := staged(t, m)
		hasCode(t, v.expand(t.Context(), 2*sectors*sectorSize), codes.Internal, "bytes")
		if commands := m.commands("multipathd resize"); len(commands) > 0 {
			t.Errorf("multipathd got: %v", commands)
		}
	})
}
