package store_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func targetApplied(uid, export string) model.AppliedReport {
	return model.AppliedReport{Kind: model.KindTarget, UID: uid, Export: export}
}

func observeApplied(f *fixture, c *store.Connection, reports ...model.AppliedReport) {
	f.t.Helper()
	if err := c.ObserveApplied(f.t.Context(), reports); err != nil {
		f.t.Fatal(err)
	}
}

func revision(f *fixture) int64 {
	f.t.Helper()
	at, err := f.Revision(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return at
}

func TestAppliedReportsAreStoredOnChangeAndDeletedWhenNotRepeated(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	refused := model.AppliedReport{Kind: model.KindVolume, UID: "v", Refused: "no such pool"}
	observeApplied(f, c, targetApplied("t", "1.1"), refused)
	expectObserved(f, "connection 1/one", "applied 1/one t 1.1", "applied 1/one v no such pool")
	before := revision(f)
	observeApplied(f, c, targetApplied("t", "1.1"), refused)
	if after := revision(f); after != before {
		t.Errorf("the same was stored again: revision %d, before %d", after, before)
	}
	observeApplied(f, c, targetApplied("t", "2.1"))
	expectObserved(f, "connection 1/one", "applied 1/one t 2.1")
}

func TestTheNextStreamWithdrawsTheAppliedReportsOfAnEarlierOne(t *testing.T) {
	f := withGateways(t, 2)
	observeApplied(f, connect(f, "gw-2", "other"), targetApplied("old", "9.9"))
	observeApplied(f, connect(f, "gw-1", "one"), targetApplied("old", "1.1"), targetApplied("t", "1.1"))
	again := connect(f, "gw-1", "one")
	before := revision(f)
	observeApplied(f, again, targetApplied("old", "1.1"), targetApplied("t", "1.1"))
	if after := revision(f); after != before {
		t.Errorf("the reports of the earlier stream were stored again: revision %d, before %d", after, before)
	}
	observeApplied(f, again, targetApplied("t", "1.1"))
	expectObserved(f, "connection 1/one", "connection 2/other", "applied 1/one t 1.1", "applied 2/other old 9.9")
	if err := f.term().ForgetGateway(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	expectObserved(f, "connection 1/one", "connection 2/other", "applied 1/one t 1.1")
}
