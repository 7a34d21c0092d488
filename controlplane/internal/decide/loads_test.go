package decide_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// meter reports the counters of volume u to a view, every LoadsInterval.
type meter struct {
	view  *decide.LeaderView
	at    time.Time
	count map[uint32]uint64
}

func metered(owner model.GatewayRef) *meter {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Owner: owner, Epoch: 1}, false)
	m := &meter{view: v, at: start, count: map[uint32]uint64{}}
	m.tell(ref(1), 0)
	m.tell(ref(2), 0)
	return m
}

func (m *meter) tell(by model.GatewayRef, commands uint64) {
	m.count[by.Number] += commands
	m.view.Observe(model.Observed{Version: 1, Load: &model.LoadReport{Gateway: by, At: m.at,
		Volumes: []model.VolumeLoad{{UID: "u", Commands: m.count[by.Number]}}}}, m.at)
}

// runs advances the time, while one gateway executes this rate of commands per second and the other none.
func (m *meter) runs(by model.GatewayRef, rate uint64, reports int) {
	for range reports {
		m.at = m.at.Add(model.LoadsInterval)
		m.tell(by, rate*uint64(model.LoadsInterval/time.Second))
		m.tell(ref(3-by.Number), 0)
	}
}

func (m *meter) load() uint64 { return m.view.Cluster().Volumes[0].Load }

// within asserts that the load that placement uses lies between two bounds.
func (m *meter) within(t *testing.T, when string, low, high uint64) {
	t.Helper()
	if load := m.load(); load < low || load > high {
		t.Errorf("%s placement goes by %d commands a second, wanted %d to %d", when, load, low, high)
	}
}

func TestPlacementGoesByLoadThatLastsAndHardlyByABurst(t *testing.T) {
	m := metered(ref(1))
	m.runs(ref(1), 0, int(decide.LoadMemory/model.LoadsInterval))
	m.runs(ref(1), 10_000, 1)
	m.within(t, "after a burst of one report", 100, 800)
	m.runs(ref(1), 10_000, int(2*decide.LoadMemory/model.LoadsInterval))
	m.within(t, "after a load that lasts", 8_000, 10_000)
	m.runs(ref(1), 0, 1)
	m.within(t, "after a pause of one report", 8_000, 10_000)
	m.runs(ref(1), 0, int(3*decide.LoadMemory/model.LoadsInterval))
	m.within(t, "long after the end", 0, 600)
}

func TestALeaderGoesByWhatItHasSeenSoFar(t *testing.T) {
	m := metered(ref(1))
	m.runs(ref(1), 10_000, 1)
	m.within(t, "after the first rate", 9_999, 10_000)
	m.runs(ref(1), 5_000, 1)
	m.within(t, "after the second", 7_000, 8_000)
}

func TestAVolumesLoadOutlivesAChangeOfOwner(t *testing.T) {
	m := metered(ref(1))
	m.runs(ref(1), 10_000, int(3*decide.LoadMemory/model.LoadsInterval))
	before := m.load()
	stored(m.view, model.Ownership{State: model.Owned, Owner: ref(2), Epoch: 2}, 2)
	m.within(t, "at the new owner, before it has reported,", before, before)
	m.runs(ref(2), 10_000, int(decide.LoadMemory/model.LoadsInterval))
	m.within(t, "at the new owner, while the old one reports what it did,", 9_000, 10_000)
}

func TestReportsOfAClockThatWasSetMakeNoRate(t *testing.T) {
	for what, jump := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		m := metered(ref(1))
		m.runs(ref(1), 10_000, 20)
		before := m.load()
		m.at = m.at.Add(jump)
		m.tell(ref(1), 1_000_000)
		m.within(t, "after a clock was set "+what, before, before)
		m.runs(ref(1), 20_000, 1)
		m.within(t, "one report later", before+1, 11_000)
	}
}

func TestAnotherProcessOfAGatewayStartsToCountAtZero(t *testing.T) {
	m := metered(ref(1))
	m.runs(ref(1), 10_000, 20)
	before := m.load()
	again := model.GatewayRef{Number: 1, Incarnation: "j"}
	stored(m.view, model.Ownership{State: model.Owned, Owner: again, Epoch: 2}, 2)
	m.at = m.at.Add(model.LoadsInterval)
	m.tell(again, 1_000_000_000)
	m.within(t, "after its first report", before, before)
	m.at = m.at.Add(model.LoadsInterval)
	m.tell(again, 300_000)
	m.within(t, "after its second report", before+1, 11_000)
}
