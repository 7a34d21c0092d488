package orchestrator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// asks has each of so many volumes ask for its turn, and gives those whose turn it is.
func asks(t *takeovers, count int, rate func(i int) float64) (set []string) {
	for i := range count {
		name := fmt.Sprintf("v-%04d", i)
		if t.turn(name, rate(i), time.Unix(1, 0)) == 0 {
			set = append(set, name)
		}
	}
	return set
}

func idle(int) float64 { return 0 }

func TestTheBusiestOfThoseThatWaitSetsOutNextWhoeverAskedFirst(t *testing.T) {
	waiting := newTakeovers()
	set := asks(&waiting, FirstTakeovers+100, func(i int) float64 {
		if i == FirstTakeovers+50 {
			return 1000
		}
		return 0
	})
	if len(set) != FirstTakeovers {
		t.Fatalf("%d set out at first", len(set))
	}
	waiting.ended(set[0])
	if next, want := waiting.next(), fmt.Sprintf("v-%04d", FirstTakeovers+50); len(next) != 2 || next[0] != want {
		t.Errorf("%v, wanted %s and one more", next, want)
	}
}

// Each that arrives makes room for two, until as many are under way as it takes. With the last it begins anew.
func TestAsTakeoversArriveMoreAndMoreSetOut(t *testing.T) {
	waiting := newTakeovers()
	const rounds = 4
	count := (1<<rounds - 1) * FirstTakeovers
	under := asks(&waiting, count, idle)
	for round := range rounds {
		if want := FirstTakeovers << round; len(under) != want {
			t.Fatalf("%d are under way, wanted %d", len(under), want)
		}
		for _, name := range under {
			waiting.ended(name)
		}
		under = waiting.next()
		for _, name := range under {
			if waiting.turn(name, 0, time.Unix(1, 0)) != 0 {
				t.Fatalf("%s was told that it is its turn", name)
			}
		}
	}
	if len(under) != 0 || len(waiting.begun)+len(waiting.order)+len(waiting.listed) != 0 {
		t.Errorf("what is left: %v, %+v", under, waiting)
	}
	if set := asks(&waiting, count, idle); len(set) != FirstTakeovers {
		t.Errorf("the next time %d set out at first", len(set))
	}
}

func TestAVolumeThatIsDeletedTakesNoTurnAndMakesRoom(t *testing.T) {
	v := NewView(1, time.Now())
	set := asks(&v.takeovers, FirstTakeovers+2, idle)
	first, second := fmt.Sprintf("v-%04d", FirstTakeovers), fmt.Sprintf("v-%04d", FirstTakeovers+1)
	for _, name := range []string{first, set[0]} {
		v.Delete(&model.Volume{Meta: model.Meta{Name: name}}, 2)
	}
	if turns := v.nextTakeovers(); !slices.Equal(turns, []Key{{model.KindVolume, second}}) {
		t.Errorf("%v", turns)
	}
}

// A volume of which no rate is known goes by what its owner has executed at all.
func TestWhatAGatewayThatIsLostTouchesBeginsWithTheBusiestVolumes(t *testing.T) {
	v := NewView(1, time.Now())
	ref := model.GatewayRef{Number: 1, Incarnation: "a"}
	now := time.Unix(1000, 0)
	for _, commands := range []uint64{1, 2} {
		report := &store.LoadReport{Gateway: ref, At: now}
		for i, name := range []string{"idle", "some", "many"} {
			v.Put(inState(name, 1, model.Owned))
			report.Volumes = append(report.Volumes, store.VolumeLoad{UID: name, Commands: commands * uint64(1000*i)})
		}
		v.Put(inState("new", 1, model.Owned))
		if commands == 2 {
			report.Volumes = append(report.Volumes, store.VolumeLoad{UID: "new", Commands: 7})
		}
		v.Observe(store.Observed{Version: 1, Load: report}, now)
		now = now.Add(store.LoadsInterval)
	}
	want := []Key{{model.KindVolume, "many"}, {model.KindVolume, "some"}, {model.KindVolume, "new"}, {model.KindVolume, "idle"}}
	if touched := v.touchedByGateway(1); !slices.Equal(touched, want) {
		t.Errorf("%v", touched)
	}
}
